"""JSON Schemas of what is sent and answered, for the OpenAPI document.

What a request's schema forbids, the service refuses. The service refuses more: that `p` sums to 1,
that regions are known and text can be printed is beyond JSON Schema.
"""

from __future__ import annotations

from typing import Any

from rapo.gate.acts import LONGEST_REASON
from rapo.gate.events import LONGEST_ID
from rapo.gate.gate import MOST_CANDIDATES
from rapo.gate.intake import MOST_REGIONS
from rapo.gate.service.platform import MOST_ITEMS

Schema = dict[str, Any]


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(needed: str, **properties: Schema) -> Schema:
    """An object of a request: these names and no others."""
    shape: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**shape, "required": needed.split()} if needed else shape


def _answer(**properties: Schema) -> Schema:
    """An object of an answer: all these names; later versions may add some."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_WORD: Schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_ID}
_WORD_OR_NULL: Schema = {**_WORD, "type": ["string", "null"]}
_INTEGER: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": "number"}
_NUMBERS = _list(_NUMBER)
_TRUTH: Schema = {"type": "boolean"}
_OBJECT: Schema = {"type": "object"}
_TEXT: Schema = {"type": "string"}
_ID: Schema = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
_REGION: Schema = {"anyOf": [_WORD, _ID]}
_SECONDS: Schema = {"type": ["number", "null"], "description": "Unix seconds."}
_REASON: Schema = {
    "type": ["string", "null"], "minLength": 1, "maxLength": LONGEST_REASON,
    "description": "For the log; only a dry run goes without.",
}  # fmt: skip
_REPORTS: Schema = {
    **_list({"type": "integer", "minimum": 1, "maximum": 2**63 - 1}, minItems=1),
    "type": ["array", "null"], "description": "Report ids.",
}  # fmt: skip
_PAIR = _list(_NUMBER, minItems=2, maxItems=2)

REQUESTS: dict[str, Schema] = {
    "DecisionRequest": {
        **_object(
            "regions p",
            request_id={
                **_WORD_OR_NULL,
                "description": "Sent again with the same body, the first answer comes again.",
            },
            regions={
                "anyOf": [
                    _list(_WORD, minItems=1, maxItems=MOST_CANDIDATES),
                    _list(_ID, minItems=1, maxItems=MOST_CANDIDATES),
                ],
                "description": "Region of each candidate: all strings or all integers.",
            },
            p=_list(
                {"type": "number", "minimum": 0},
                minItems=1, maxItems=MOST_CANDIDATES,
                description="Proposed probability of each candidate; they sum to 1.",
            ),
            stimulus=_WORD_OR_NULL,
        ),
        "examples": [{"request_id": "r-1", "regions": ["cats", "diets"], "p": [0.5, 0.5]}],
    },
    "ExposureRequest": _object("decision_id shown", decision_id=_WORD, shown=_list(_REGION)),
    "HarmReport": _object(
        "source key harm signal at",
        source=_WORD,
        key={**_WORD, "description": "The reporter's name of it: sent twice, it counts once."},
        harm={"type": "number", "minimum": 0, "description": "At most the gate's max_harm."},
        signal={**_WORD, "maxLength": 64, "description": "Kind of evidence."},
        at={**_NUMBER, "description": "When the exposure was, Unix seconds."},
        decision_id=_WORD_OR_NULL,
        regions=_or_null(_list(_REGION, minItems=1, maxItems=MOST_REGIONS)),
    ),
    "ReportsRequest": {
        **_object(
            "items",
            items=_list(
                {
                    "anyOf": [_ref("HarmReport"), {}],
                    "description": "A HarmReport; anything else is refused by itself, with 422 as "
                    "the code of its result, and does not hinder the others.",
                },
                maxItems=MOST_ITEMS,
            ),
        ),
        "examples": [{"items": [{
            "source": "app", "key": "k-1", "regions": ["diets"], "harm": 1.0,
            "signal": "user-report", "at": 1767312000.0,
        }]}],
    },
    "ConfirmationRequest": _object(
        "", reports=_REPORTS, regions=_or_null(_list(_REGION)), reason=_REASON
    ),
    "OverrideRequest": _object(
        "region psi",
        region=_REGION,
        psi={"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1,
             "description": "At least psi_min; null takes an override back."},
        expires_at=_SECONDS,
        reason=_REASON,
    ),
    "AllowanceRequest": _object("region", region=_REGION, remove=_TRUTH, reason=_REASON),
    "RollbackRequest": _object(
        "", reports=_REPORTS, source=_WORD_OR_NULL, start=_SECONDS, end=_SECONDS, reason=_REASON
    ),
    "ModeRequest": _object(
        "mode",
        mode={"type": "string", "enum": ["shadow", "enforce"]},
        percent={"type": "number", "minimum": 0, "maximum": 100},
        reason=_REASON,
    ),
    "LabelsRequest": _object(
        "labels",
        labels=_list(
            _object(
                "region", region=_REGION, group=_WORD_OR_NULL, topic=_WORD_OR_NULL,
                sensitive={"enum": ["yes", "no", None]},
            ),
            minItems=1,
        ),
        reason=_REASON,
    ),
}  # fmt: skip

_RESULT = _answer(
    status={"type": "string", "enum": ["accepted", "review", "quarantined", "refused"]},
    code={"type": "integer", "enum": [200, 202, 403, 409, 422]},
    report_id={"type": ["integer", "null"]},
    duplicate=_TRUTH,
    error={"type": ["string", "null"]},
)
_CHANGED = _answer(region=_REGION, psi=_PAIR, G=_PAIR, H=_PAIR)
_REGION_VIEW = _answer(
    region=_REGION, G=_NUMBER, H=_NUMBER, psi=_NUMBER, confirmed=_TRUTH, sources=_INTEGER,
    signals=_INTEGER, label=_OBJECT, proposed=_NUMBER, gated=_NUMBER, served=_NUMBER,
)  # fmt: skip

ANSWERS: dict[str, Schema] = {
    "Error": _answer(error={**_TEXT, "minLength": 1}),
    "Ping": _answer(ok=_TRUTH),
    "Decision": _answer(
        decision_id=_TEXT, q=_NUMBERS, psi=_NUMBERS, revision=_INTEGER,
        mode={"type": "string", "enum": ["shadow", "enforce"]},
    ),
    "Exposure": _answer(
        in_time={**_TRUTH, "description": "Whether reports on it had not counted yet."}
    ),
    "Reports": _answer(results=_list(_RESULT)),
    "Effect": _answer(
        dry_run=_TRUTH, regions=_list(_CHANGED), reports=_INTEGER,
        revision={"type": ["integer", "null"]}, event={"type": ["integer", "null"]},
    ),
    "Region": _REGION_VIEW,
    "Regions": _answer(regions=_list(_ref("Region")), known=_INTEGER, revision=_INTEGER),
    "Chain": _answer(
        region=_ref("Region"), reports=_list(_OBJECT), reports_in_all=_INTEGER, course=_OBJECT,
        due=_list(_OBJECT), decisions=_list(_OBJECT),
    ),
    "Explanation": _answer(
        decision_id=_TEXT, position=_INTEGER, at=_NUMBER, mode=_TEXT, applied=_TRUTH,
        total_variation=_NUMBER, regions=_list(_OBJECT),
    ),
    "Queue": _answer(reports=_list(_OBJECT)),
    "Reporters": _answer(reporters=_list(_OBJECT)),
    "Bias": _answer(group=_list(_OBJECT), topic=_list(_OBJECT)),
    "Outcomes": _answer(stimuli=_list(_OBJECT), reach=_NUMBERS, sensitive=_NUMBERS, at=_NUMBERS),
    "Overview": _answer(
        mode=_TEXT, percent=_NUMBER, tick=_INTEGER, revision=_INTEGER, position=_INTEGER,
        regions=_INTEGER, scar_mass=_NUMBER, decisions=_INTEGER, reports=_INTEGER, alarms=_OBJECT,
    ),
    "Events": _answer(
        events=_list(_answer(position=_INTEGER, kind=_TEXT, at=_NUMBER)),
        next={**_INTEGER, "description": "Ask again with after=next; no events: all were read."},
    ),
    "Verification": _answer(ok=_TRUTH, position=_INTEGER, fields=_TEXT, replay=_TEXT),
    "Health": _answer(
        status={"type": "string", "enum": ["ok", "stale", "broken"]},
        why={"type": ["string", "null"]}, revision=_INTEGER, position=_INTEGER, behind=_INTEGER,
        tick=_INTEGER, mode=_TEXT,
    ),
}  # fmt: skip
