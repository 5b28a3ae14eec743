"""`Setting`: the open choices of the simulated platform, read from files of the package.

What the paper leaves open (cascade size, injection rates, reward shape, region size, ...) is chosen
once for every method. The values live in `setting.toml` beside this file; other readings of the
paper, `Setting.named("compact")` for one, in the folder `readings`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from rapo.cascade.harm_history import HarmFunction
from rapo.names import import_named
from rapo_core.checks import (
    Count,
    FromOne,
    FromZero,
    OpenShare,
    Positive,
    Share,
    ShareOrNone,
    UserError,
    Within,
    check_fields,
)
from rapo_core.params import FieldParams

AGGRESSIVE, MODERATE, CONSERVATIVE = 0, 1, 2
ACTIONS = ("aggressive", "moderate", "conservative")
OUTBREAK, CASCADE, CONTACT = "outbreak", "cascade", "contact"
SPREADS = (OUTBREAK, CASCADE, CONTACT)
"""The spreading laws, which answer what the paper leaves open about the active set.

- `outbreak` (SIR): a node is activated at most once in a phase; while it is active it tries its
  neighbours in every step, and it stays active with probability s.
- `cascade` (independent cascade): a node is activated at most once in a phase; it tries its
  neighbours in the one step after it was reached, and it stays active until the phase ends.
- `contact` (SIS): a node may be activated again and again; while it is active it tries its
  neighbours in every step, and it stays active with probability s.

Under the first two the content is withdrawn when the stimulus is switched off: no node is active
from the next step on.
"""
EXPOSURE, DECAY, REPLAY = 0, 1, 2
PHASES = ("exposure", "decay", "replay")
"""As files and arguments call them; to people the second one is the washout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Choices about graph, dynamics, injection, reward, budget; `Setting.default()` reads them."""

    neighbours: FromOne
    """Targets are drawn among the `neighbours * out_degree` nearest nodes, >= 1."""
    sensitive_low: OpenShare
    """Smallest share of nodes in V_sens, in (0, 1)."""
    sensitive_high: OpenShare
    """Largest share of nodes in V_sens, in (0, 1)."""
    stretch: FromOne
    """Length over breadth of the shape along which V_sens is grown, >= 1; 1 is a ball."""
    echo: ShareOrNone
    """Probability that an edge leaving V_sens is turned inwards, in [0, 1]; generated graphs."""
    inside_weight: Positive
    """Factor on the probability of edges inside V_sens before scaling, > 0."""
    entering_weight: Positive
    """The same of edges into V_sens, > 0."""
    leaving_weight: Positive
    """The same of edges out of V_sens, > 0."""
    factor: FromZero
    """Factor on all probabilities of a generated graph, >= 0; 0 searches, for each graph, the one
    that gives `cascade_target` or `reach_target`, as is always done for a loaded graph."""
    reach_target: OpenShare
    """Share of all nodes that a nominal wave reaches under `outbreak` and `cascade`, in (0, 1)."""
    cascade_target: Positive
    """Mean |A_t| over steps 50..400 of a nominal run with the moderate action, > 0."""
    seeding: Literal["ball", "split"]
    """Where the seeds of a stimulus lie: in a `ball` around a node of V_sens, or `split` into those
    nearest to it inside V_sens and those nearest outside."""
    support: Count
    """Seed nodes of a stimulus, >= 1; split ones are at most an eighth of the nodes."""
    inside_share: ShareOrNone
    """Of split seeds: mean share inside V_sens, in [0, 1]."""
    inside_spread: FromZero
    """Of split seeds: the share is uniform over stimuli within `inside_share` +- this, >= 0."""
    ignition_runs: Annotated[int, Within(0)]
    """Nominal runs under each action in which a stimulus must ignite V_sens, >= 0; one that fails
    is drawn again when a graph is generated. 0 keeps every stimulus."""
    edge_cap: Share
    """Largest probability of an edge, in (0, 1]: odds of 1 are infinite, no gate lowers them."""
    loaded_support: Count
    """Seed nodes of a stimulus on a loaded graph, >= 1."""
    loaded_share: ShareOrNone
    """Mean share inside V_sens of split seeds on a loaded graph, in [0, 1]."""
    loaded_spread: FromZero
    """The share there is uniform over stimuli within `loaded_share` +- this, >= 0."""
    spread: Literal["outbreak", "cascade", "contact"]
    """Who may be activated and how often: `outbreak`, `cascade` or `contact`, see `SPREADS`."""
    persistence: Annotated[float, Within(0, 1, high_open=True)] | None = None
    """s: probability that an active node stays active by itself, in [0, 1); None with `cascade`,
    where active nodes stay until the phase ends."""
    harm: HarmFunction | None = None
    """Harm as a function of one's own, see `harm_history`; None for the paper's saturating count,
    `min(0.1 k, 1)` of the k nodes of V_sens that were active D steps ago. The harm is attributed to
    the regions of these k nodes either way."""
    delay: Count
    """D: steps between activity and the harm it causes, >= 1."""
    regions: Annotated[str, "a region spec such as 'community:5'"]
    """Region spec: `node`, `community:<mean size>`, `pieces:<mean size>` or `grid:<k>`."""
    straddle: bool
    """Whether a community may hold nodes on both sides of the border of V_sens."""
    rates: tuple[Positive, Positive, Positive]
    """Expected seeds per step under the aggressive, moderate and conservative action, > 0."""
    injection_cap: Share
    """Largest probability with which a step injects into one node, in (0, 1]."""
    influence_tilt: FromZero
    """Aggressive seeds are weighted by exp(influence_tilt * influence), >= 0."""
    risk_tilt: FromZero
    """Conservative seeds are weighted by exp(-risk_tilt * risk), >= 0."""
    kappa_s: FromZero
    """Saturation of the reward for served injections, >= 0; 0 is a reward linear in them."""
    outside_weight: FromZero
    """Weight of engagement outside V_sens in the reward, >= 0."""
    kappa: Positive
    """Saturation of engagement outside V_sens, in nodes, > 0."""
    psi_min: Share
    """Lower bound of the conductance where no constants of the fields are complete, in (0, 1]."""
    budget: FromZero
    """f: budget of every cost, as a share of the constant aggressive policy's under `P0`, >= 0;
    at 0 the duals rise with the cost itself, as the paper writes it."""
    horizons: tuple[Count, Count, Count]
    """Steps of exposure, decay and replay, >= 1 each."""
    show_stimulus: bool
    """Whether the observable `x` also holds the centroid of the stimulus' seed distribution."""

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.persistence is None) != (self.spread == CASCADE):
            stays = "stay active until the phase ends: leave persistence out"
            leaves = "stay with probability persistence: give a number in [0, 1)"
            raise UserError(
                f"persistence does not fit spread {self.spread!r}, whose active nodes "
                f"{stays if self.spread == CASCADE else leaves}; got {self.persistence!r}"
            )
        if self.sensitive_low > self.sensitive_high:
            raise UserError(
                f"sensitive_low must be at most sensitive_high, got {self.sensitive_low} > "
                f"{self.sensitive_high}"
            )

    @staticmethod
    def default() -> Setting:
        """The package's own values."""
        return _read(DEFAULT)

    @staticmethod
    def named(name: str) -> Setting:
        """A reading of the paper by its name, one of `READINGS`.

        `echo` is the default: V_sens is an echo chamber. `compact` is the first reading, with all
        stimuli inside V_sens and a saturating reward. `bistable` lets activity, once established,
        resist the gate.
        """
        if name not in READINGS:
            raise UserError(f"reading must be one of {', '.join(READINGS)}, got {name!r}")
        return _read(name)

    @property
    def stopping(self) -> float:
        """Probability that an active node tries its neighbours no more in the next step."""
        return 1.0 if self.persistence is None else 1 - self.persistence

    @property
    def params(self) -> FieldParams:
        """Constants of the fields where none are complete: the paper's, with `psi_min`."""
        return FieldParams(psi_min=self.psi_min)

    def replace(self, **changes: Any) -> Setting:
        """A copy with some values changed, validated anew."""
        return Setting.from_dict({**asdict(self), **changes})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for configs and manifests; a harm function is `module:name` there."""
        values = asdict(self)
        if self.harm is not None:
            values["harm"] = f"{self.harm.__module__}:{self.harm.__qualname__}"
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Setting:
        """Build from a mapping that holds every field and nothing else.

        `persistence` and `harm` may be left out for None, for which a TOML file has no word.
        """
        complete = dict(values)
        for name in ("persistence", "harm"):
            complete.setdefault(name, None)
        if isinstance(complete["harm"], str):
            complete["harm"] = import_named(complete["harm"], "harm function")
        names = {f.name for f in fields(cls)}
        wrong = sorted(set(complete) ^ names)
        if wrong:
            raise UserError(f"unknown or missing settings {wrong}; needed are {sorted(names)}")
        return cls(**complete)


DEFAULT = "echo"
READINGS = (DEFAULT, "compact", "bistable")


@lru_cache
def _read(name: str) -> Setting:
    folder = files("rapo.cascade")
    path = folder / "setting.toml" if name == DEFAULT else folder / "readings" / f"{name}.toml"
    return Setting.from_dict(tomllib.loads(path.read_text(encoding="utf-8")))
