"""What is sent and answered, as pydantic models, from which the OpenAPI document follows.

What a model of a request forbids, the service refuses. The gate refuses more: that `p` sums to 1,
that regions are known and text can be printed is beyond JSON Schema. The bodies of actions are made
of their declarations. Answers have all these names; later versions may add some.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StringConstraints,
    WithJsonSchema,
    create_model,
)

from rapo_core.checks import UserError
from rapo_gate.decide import MOST_CANDIDATES
from rapo_gate.declare import LABELS, LONGEST_REASON, Action, Kind, Spec
from rapo_gate.events import LONGEST_ID
from rapo_gate.intake import MOST_REGIONS

MOST_ITEMS = 1000
"""Reports of one request; more is refused with 413."""

Word = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=LONGEST_ID)]
Id = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)]
Region = Word | Id
ReportId = Annotated[int, Field(strict=True, ge=1, le=2**63 - 1)]
Link = Annotated[str, StringConstraints(pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://.", max_length=1000)]
Values = dict[str, Any]


def _digits(text: Any) -> Any:
    """Only plain digits: not +5, not 1_000, not digits of other scripts."""
    if isinstance(text, str) and not (text.isascii() and text.isdecimal()):
        raise UserError("must be a whole number")
    return text


def _true_or_false(text: Any) -> Any:
    if isinstance(text, str) and text not in ("true", "false"):
        raise UserError("must be true or false")
    return text


Whole = Annotated[int, BeforeValidator(_digits)]
"""A whole number in a query."""
Flag = Annotated[bool, BeforeValidator(_true_or_false)]
"""True or false in a query."""


class Sent(BaseModel):
    """An object of a request: its names and no others."""

    model_config = ConfigDict(extra="forbid")


class DecisionRequest(Sent):
    """A proposed distribution."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"request_id": "r-1", "regions": ["cats", "diets"], "p": [0.5, 0.5]}]
        }
    )
    regions: Annotated[
        Annotated[list[Word], Field(min_length=1, max_length=MOST_CANDIDATES)]
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
        Word | None,
        Field(description="Sent again with the same body, the first answer comes again."),
    ] = None
    stimulus: Word | None = None


class ExposureRequest(Sent):
    """What was really shown of a decision."""

    decision_id: Word
    shown: list[Region]


class HarmReportItem(Sent):
    """One report, as the document describes it; the gate itself checks each."""

    source: Word
    key: Annotated[Word, Field(description="The reporter's name of it: twice, it counts once.")]
    harm: Annotated[Share, Field(description="At most the gate's max_harm.")]
    signal: Annotated[str, Field(min_length=1, max_length=64, description="Kind of evidence.")]
    at: Annotated[Number, Field(description="When the exposure was, Unix seconds.")]
    decision_id: Word | None = None
    regions: Annotated[list[Region], Field(min_length=1, max_length=MOST_REGIONS)] | None = None


def _item_schema() -> Values:
    shape = HarmReportItem.model_json_schema()
    shape.pop("title")
    about = (
        "A report; anything else is refused by itself, with 422 as the code of its result, and "
        "does not hinder the others."
    )
    return {"anyOf": [shape, {}], "description": about}


class ReportsRequest(Sent):
    """Reports of harm."""

    items: Annotated[
        list[Annotated[Any, WithJsonSchema(_item_schema())]],
        Field(json_schema_extra={"maxItems": MOST_ITEMS}),  # more is 413, not 422
    ]


# --- bodies of actions

LabelItem = create_model(  # type: ignore[call-overload]
    "LabelItem",
    __base__=Sent,
    region=(Region, ...),
    **{
        name: (Literal["yes", "no"] | None if name == "sensitive" else Word | None, None)
        for name in LABELS
        if name != "url"
    },
    url=(Link | None, None),
)


def request_of(action: type[Action]) -> type[Sent]:
    """The body of an action: its fields, and the reason."""
    shape: Values = {}
    for spec in action.specs():
        kind: Any = Annotated[_type(spec), Field(description=spec.given.about)]
        if spec.nullable:
            kind = kind | None
        shape[spec.name] = (kind, ... if spec.needed else spec.default)
    about = Field(description="For the log; only a dry run goes without.")
    reason = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=LONGEST_REASON)]
    shape["reason"] = (Annotated[reason | None, about], None)
    made: type[Sent] = create_model(
        f"{action.__name__}Request", __base__=Sent, __doc__=action.__doc__, **shape
    )
    return made


def _type(spec: Spec) -> Any:
    given = spec.given
    match given.kind:
        case Kind.REGION:
            return Region
        case Kind.REGIONS:
            return list[Region]
        case Kind.REPORTS:
            return Annotated[list[ReportId], Field(min_length=1)]
        case Kind.WORD:
            return Word
        case Kind.REAL:
            return Annotated[Number, Field(ge=given.low, le=given.high)]
        case Kind.SINCE | Kind.UNTIL:
            return Number
        case Kind.FLAG:
            return StrictBool
        case Kind.CHOICE:
            return Literal[given.choices]
        case Kind.SETTINGS:
            return Annotated[dict[str, Any], Field(min_length=1)]
        case Kind.LABELS:
            return Annotated[list[LabelItem], Field(min_length=1)]  # type: ignore[valid-type]


def values_of(action: type[Action], body: Any) -> Values:
    """The fields of an action, from its body."""
    return {
        s.name: _labels(body.labels) if s.given.kind is Kind.LABELS else getattr(body, s.name)
        for s in action.specs()
    }


def _labels(items: list[BaseModel]) -> dict[Any, dict[str, str]]:
    found: dict[Any, dict[str, str]] = {}
    for item in items:
        label = item.model_dump(exclude_none=True)
        region = label.pop("region")
        if region in found:
            raise UserError(f"region {region!r} is labelled twice")
        found[region] = label
    return found


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

    region: Region
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
    """An answer with these names, all of them needed."""
    needed: Any = {field: (kind, ...) for field, kind in shape.items()}
    return create_model(name, __base__=BaseModel, __doc__=about, **needed)


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
