"""Structured logs: one JSON line per event, one event per request, never a key."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TextIO

LOGGER = logging.getLogger("rapo.gate.service")
CALLER = "rapo.gate.caller"
"""Where a request's scope holds the name of its key."""


class JsonLines(logging.Formatter):
    """A record as one line of JSON: when, how bad, what, and the fields it carries."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "at": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_to(stream: TextIO | None = None, level: int = logging.INFO) -> logging.Handler:
    """Send the service's log to a stream, stderr by default; the handler, to take it off again."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (LOGGER.name, "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
    return handler
