"""The OpenAPI document, made of the operations that the service runs."""

from __future__ import annotations

import re
from typing import Any

from rapo.gate.events import LONGEST_ID
from rapo.gate.service.body import LARGEST_BODY
from rapo.gate.service.operation import Operation, Query
from rapo.gate.service.schemas import ANSWERS, REQUESTS

_WORDS = {
    400: "The body is not JSON.",
    401: "No key, or one that is not known.",
    403: "The key has another scope.",
    404: "There is no such thing.",
    408: "The body did not arrive in time.",
    409: "The same name was used for something else before.",
    413: f"More than {LARGEST_BODY} bytes, or too many items.",
    415: "The body is not declared as application/json.",
    422: "Something in it is wrong; the message says what. Nothing was changed.",
    500: "A fault of the gate.",
    503: "The log is out of reach; nothing was acknowledged.",
}
_HEADERS = {401: "WWW-Authenticate", 503: "Retry-After"}
_CHECKED = "What it needs is checked before anything is changed; an error changes nothing."


def extra(operation: Operation) -> dict[str, Any]:
    """What FastAPI cannot see: handlers take the raw request."""
    described: dict[str, Any] = {"security": [{"key": []}] if operation.scope else []}
    path = [_path_parameter(name) for name in re.findall(r"{(\w+)", operation.path)]
    parameters = path + [_parameter(query) for query in operation.query]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        content = {"application/json": {"schema": _ref(operation.body)}}
        described["requestBody"] = {"required": True, "content": content}
    if operation.scope is not None:
        described["description"] = f"Needs a key of scope `{operation.scope}`. {_CHECKED}"
    return described


def responses(operation: Operation) -> dict[int | str, dict[str, Any]]:
    """Every answer an operation can give."""
    content: dict[str, Any] = {"application/json": {"schema": _ref(operation.answer)}}
    if operation.answer == "text":
        content = {"text/plain": {"schema": {"type": "string"}}}
    found: dict[int | str, dict[str, Any]] = {200: {"description": "Done.", "content": content}}
    for status in operation.statuses():
        error = "Health" if (operation.answer, status) == ("Health", 503) else "Error"
        found[status] = {
            "description": _WORDS[status],
            "content": {"application/json": {"schema": _ref(error)}},
        }
        if status in _HEADERS and error == "Error":
            header = {"schema": {"type": "string"}}
            found[status]["headers"] = {_HEADERS[status]: header}
    return found


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """FastAPI's document with the schemas and the kind of key."""
    document["components"] = {
        "schemas": {**REQUESTS, **ANSWERS},
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
    }
    return document


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _path_parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_ID}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _parameter(query: Query) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "boolean", "default": query.default}
    if not isinstance(query.default, bool):
        schema = {
            "type": "integer", "default": query.default, "minimum": query.low,
            "maximum": query.high,
        }  # fmt: skip
    return {"name": query.name, "in": "query", "description": query.about, "schema": schema}
