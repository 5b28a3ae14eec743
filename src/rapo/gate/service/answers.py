"""What is answered, as pydantic models: all these names; later versions may add some."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from rapo.gate.service.models import Region

Values = dict[str, Any]
Pair = Annotated[list[float], Field(min_length=2, max_length=2)]


class Error(BaseModel):
    """Why nothing was done."""

    error: Annotated[str, Field(min_length=1)]


class Ping(BaseModel):
    """The key was right."""

    ok: bool


class DecisionAnswer(BaseModel):
    """What to serve."""

    decision_id: str
    q: list[float]
    psi: list[float]
    revision: int
    mode: Literal["shadow", "enforce"]


class ExposureAnswer(BaseModel):
    """Whether reports on it had not counted yet."""

    in_time: bool


class ReportAnswer(BaseModel):
    """What became of one report."""

    status: Literal["accepted", "review", "quarantined", "refused"]
    code: Literal[200, 202, 403, 409, 422]
    report_id: int | None
    duplicate: bool
    error: str | None


class ReportsAnswer(BaseModel):
    """A result per item."""

    results: list[ReportAnswer]


class ChangedRegion(BaseModel):
    """Before and after."""

    region: Region
    psi: Pair
    G: Pair
    H: Pair


class EffectAnswer(BaseModel):
    """What an action did, or would do."""

    dry_run: bool
    regions: list[ChangedRegion]
    reports: int
    revision: int | None
    event: int | None


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


class RegionsAnswer(BaseModel):
    """Regions with the largest scars."""

    regions: list[RegionAnswer]
    known: int
    revision: int


class ChainAnswer(BaseModel):
    """From reports to decisions."""

    region: RegionAnswer
    reports: list[Values]
    reports_in_all: int
    course: Values
    due: list[Values]
    decisions: list[Values]


class ExplanationAnswer(BaseModel):
    """Why a decision is as it is."""

    decision_id: str
    position: int
    at: float
    mode: str
    applied: bool
    total_variation: float
    regions: list[Values]


class QueueAnswer(BaseModel):
    """Reports that wait."""

    reports: list[Values]


class ReportersAnswer(BaseModel):
    """Who reported."""

    reporters: list[Values]


class BiasAnswer(BaseModel):
    """Rates by group and topic."""

    group: list[Values]
    topic: list[Values]


class OutcomesAnswer(BaseModel):
    """What came back."""

    stimuli: list[Values]
    reach: list[float]
    sensitive: list[float]
    at: list[float]


class OverviewAnswer(BaseModel):
    """The gate at a glance."""

    mode: str
    percent: float
    tick: int
    revision: int
    position: int
    regions: int
    scar_mass: float
    decisions: int
    reports: int
    alarms: Values


class EventItem(BaseModel):
    """An event of the log."""

    position: int
    kind: str
    at: float


class EventsAnswer(BaseModel):
    """A page of the log; ask again with after=next, no events: all were read."""

    events: list[EventItem]
    next: int


class VerificationAnswer(BaseModel):
    """Hashes of the live state and of a fresh fold."""

    ok: bool
    position: int
    fields: str
    replay: str


class HealthAnswer(BaseModel):
    """Whether answers are fresh."""

    status: Literal["ok", "ahead", "stale", "broken"]
    why: str | None
    revision: int
    position: int
    behind: int
    tick: int
    mode: str
