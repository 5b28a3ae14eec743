"""`serve`: the page at an address of this machine, until it is stopped."""

from __future__ import annotations

import os
import signal
import socket
import sys
import webbrowser
from contextlib import suppress
from typing import Any

import uvicorn

from rapo.show.lab.api import Api
from rapo.show.lab.request import SourceId
from rapo.show.lab.server import Lab
from rapo_core.checks import UserError

HOST = "127.0.0.1"


def serve(source: SourceId, first: dict[str, Any], port: int, *, open_browser: bool) -> None:
    """Serve the page until Ctrl-C, SIGTERM or the end of the terminal.

    Raises:
        UserError: the port cannot be used.
    """
    with _listening(port) as listener:
        lab = Lab(Api(source, first))
        address = f"http://{HOST}:{listener.getsockname()[1]}/?token={lab.token}"
        print(f"rapo lab is at\n  {address}\nCtrl-C ends it.")
        sys.stdout.flush()
        if open_browser and _has_screen():
            webbrowser.open(address)
        config = uvicorn.Config(
            lab.app, log_level="error", access_log=False, server_header=False, ws="none",
            lifespan="off", limit_concurrency=32, timeout_graceful_shutdown=1,
        )  # fmt: skip
        server = uvicorn.Server(config)

        def end(number: int, frame: Any) -> None:
            # An exception that is raised in a callback of the event loop may be swallowed there.
            server.should_exit = True

        # The lab ends when its terminal is closed, also where a parent process ignores the signal,
        # and it deletes what was uploaded first.
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, end)
        with suppress(KeyboardInterrupt):
            try:
                server.run(sockets=[listener])
            finally:
                lab.close()
    with suppress(OSError):  # the terminal may be closed
        print("rapo lab has ended")


def _listening(port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise UserError(f"--port must be in 0..65535, got {port}")
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise UserError(
            f"port {port} of {HOST} cannot be used ({error.strerror}); choose another with --port, "
            "or --port 0 for a free one"
        ) from None


def _has_screen() -> bool:
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
