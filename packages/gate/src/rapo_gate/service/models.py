"""Request bodies and answers as pydantic models, from which the OpenAPI document follows.

The service refuses whatever a request model forbids. The gate refuses more, because JSON Schema
cannot say that `p` sums to 1, that regions are known or that text can be printed. Bodies of human
actions follow from their declarations. An answer has all names of its model; later versions may add
names.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    create_model,
)

from rapo_core.checks import UserError
from rapo_gate.decide import MOST_CANDIDATES
from rapo_gate.declare import LONGEST_REASON, Action
from rapo_gate.fields import REQUIRED, Id, Number, RegionName, Text
from rapo_gate.reports import MOST_REGIONS

MOST_ITEMS = 1000
"""Most reports of one request; more are refused with 413."""

Share = Annotated[Number, Field(ge=0)]
Values = dict[str, Any]


def _digits(text: Any) -> Any:
    """A text of plain digits: not +5, not 1_000, not digits of other scripts."""
    if isinstance(text, str) and not (text.isascii() and text.isdecimal()):
        raise UserError("must be a whole number")
    return text


def _true_or_false(text: Any) -> Any:
    if isinstance(text, str) and text not in ("true", "false"):
        raise UserError("must be true or false")
    return text


Whole = Annotated[int, BeforeValidator(_digits)]
"""A whole number in the query of an address."""
Flag = Annotated[bool, BeforeValidator(_true_or_false)]
"""True or false in the query of an address."""


class RequestBody(BaseModel):
    """An object of a request; unknown names are refused."""

    model_config = ConfigDict(extra="forbid")


class DecisionRequest(RequestBody):
    """A proposed distribution."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"request_id": "r-1", "regions": ["cats", "diets"], "p": [0.5, 0.5]}]
        }
    )
    regions: Annotated[
        Annotated[list[Text], Field(min_length=1, max_length=MOST_CANDIDATES)]
        | Annotated[list[Id], Field(min_length=1, max_length=MOST_CANDIDATES)],
        Field(description="Region of each candidate: all strings or all integers."),
    ]
    p: Annotated[
        list[Share],
        Field(
            min_length=1,
            max_length=MOST_CANDIDATES,
            description="Proposed probability of each candidate; they sum to 1.",
        ),
    ]
    request_id: Annotated[
        Text | None,
        Field(description="Sent again with the same body, the first answer comes again."),
    ] = None
    stimulus: Text | None = None


class ExposureRequest(RequestBody):
    """The candidates of a decision that were really shown."""

    decision_id: Text
    shown: list[RegionName]


class HarmReportItem(RequestBody):
    """One report as the document describes it; the gate itself checks every report."""

    source: Text
    key: Annotated[
        Text, Field(description="The reporter's name of the report: sent twice, it counts once.")
    ]
    harm: Annotated[Share, Field(description="At most the gate's max_harm.")]
    signal: Annotated[str, Field(min_length=1, max_length=64, description="Kind of evidence.")]
    at: Annotated[Number, Field(description="When the exposure was, Unix seconds.")]
    decision_id: Text | None = None
    regions: Annotated[list[RegionName], Field(min_length=1, max_length=MOST_REGIONS)] | None = None


def _item_schema() -> Values:
    shape = HarmReportItem.model_json_schema()
    shape.pop("title")
    about = (
        "A report. A bad item is refused by itself, with 422 as the code of its result; the other "
        "items are taken."
    )
    return {"anyOf": [shape, {}], "description": about}


class ReportsRequest(RequestBody):
    """Reports of harm."""

    items: Annotated[
        list[Annotated[Any, WithJsonSchema(_item_schema())]],
        Field(json_schema_extra={"maxItems": MOST_ITEMS}),  # more is 413, not 422
    ]


# --- bodies of actions


def body_of(action: type[Action]) -> type[RequestBody]:
    """The request body of an action: its fields, each with its own type, and the reason."""
    shape: Values = {}
    for field in action.fields:
        about = Field(description=field.about)
        if field.default is REQUIRED:
            shape[field.name] = (Annotated[field.body(), about], ...)
        else:
            kind = field.body() if field.default is not None else field.body() | None
            shape[field.name] = (Annotated[kind, about], field.default)
    about = Field(description="For the log; only a dry run goes without.")
    reason = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=LONGEST_REASON)]
    shape["reason"] = (Annotated[reason | None, about], None)
    model: type[RequestBody] = create_model(
        f"{action.__name__}Request", __base__=RequestBody, __doc__=action.__doc__, **shape
    )
    return model


# --- what is answered


class ReportAnswer(BaseModel):
    """What became of one report."""

    status: Literal["accepted", "review", "quarantined", "refused"]
    code: Literal[200, 202, 403, 409, 410, 422]
    report_id: int | None
    duplicate: bool
    error: str | None


class RegionAnswer(BaseModel):
    """A region."""

    region: RegionName
    G: float
    H: float
    psi: float
    confirmed: bool
    sources: int
    signals: int
    label: Values
    proposed: float
    gated: float
    served: float


class EventItem(BaseModel):
    """An event of the log."""

    position: int
    kind: str
    at: float


def _answer(name: str, about: str, **shape: Any) -> type[BaseModel]:
    """The model of an answer in which none of the names may be missing."""
    required: Any = {field: (kind, ...) for field, kind in shape.items()}
    return create_model(name, __base__=BaseModel, __doc__=about, **required)


Error = _answer("Error", "Why nothing was done.", error=Annotated[str, Field(min_length=1)])
Ping = _answer("Ping", "The key was right.", ok=bool)
DecisionAnswer = _answer(
    "DecisionAnswer", "What to serve.", decision_id=str, q=list[float], psi=list[float],
    revision=int, mode=Literal["shadow", "enforce"],
)  # fmt: skip
ExposureAnswer = _answer(
    "ExposureAnswer", "Whether reports on it had not counted yet.", in_time=bool
)
ReportsAnswer = _answer("ReportsAnswer", "A result per item.", results=list[ReportAnswer])
RegionsAnswer = _answer(
    "RegionsAnswer", "Regions with the largest scars.", regions=list[RegionAnswer], known=int,
    revision=int,
)  # fmt: skip
ChainAnswer = _answer(
    "ChainAnswer", "From reports to decisions.", region=RegionAnswer, reports=list[Values],
    reports_in_all=int, course=Values, due=list[Values], decisions=list[Values],
)  # fmt: skip
ExplanationAnswer = _answer(
    "ExplanationAnswer", "Why a decision is as it is.", decision_id=str, position=int, at=float,
    mode=str, applied=bool, total_variation=float, regions=list[Values],
)  # fmt: skip
QueueAnswer = _answer("QueueAnswer", "Reports that wait.", reports=list[Values])
ReportersAnswer = _answer("ReportersAnswer", "Who reported.", reporters=list[Values])
BiasAnswer = _answer(
    "BiasAnswer", "Rates by group and topic.", group=list[Values], topic=list[Values]
)
OutcomesAnswer = _answer(
    "OutcomesAnswer", "What came back.", stimuli=list[Values], reach=list[float],
    sensitive=list[float], at=list[float],
)  # fmt: skip
OverviewAnswer = _answer(
    "OverviewAnswer", "The gate at a glance.", mode=str, percent=float, tick=int, revision=int,
    position=int, regions=int, scar_mass=float, decisions=int, reports=int, alarms=Values,
)  # fmt: skip
EventsAnswer = _answer(
    "EventsAnswer", "A page of the log; ask again with after=next, no events: all were read.",
    events=list[EventItem], next=int,
)  # fmt: skip
VerificationAnswer = _answer(
    "VerificationAnswer", "Hashes of the live state and of a fresh fold.", ok=bool, position=int,
    fields=str, replay=str,
)  # fmt: skip
HealthAnswer = _answer(
    "HealthAnswer", "Whether answers are fresh.",
    status=Literal["ok", "ahead", "stale", "broken"], why=str | None, revision=int, position=int,
    behind=int, tick=int, mode=str,
)  # fmt: skip
