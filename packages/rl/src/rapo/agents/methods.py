"""Every method of the paper as one row: what it sees, pays, samples from and is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from rapo_core.checks import UserError


@dataclass(frozen=True)
class Cost:
    """A cost of a step, as an entry of `info`."""

    name: str
    """Name of the cost in logs."""
    key: str
    """Entry of `info`."""
    carried: bool = False
    """Whether an eligibility trace as long as the delay D carries the cost back in time."""
    lag: int = 1
    """Steps beyond the delay D until an action shows in the cost: the action at t makes A_{t+1},
    which harms at t + 1 + D."""
    remains: bool = False
    """Whether the cost keeps 1 - lambda of its last value, as the trace G does."""


HARM = Cost("harm", "cost")
DELAYED_HARM = Cost("harm", "cost", carried=True)
TRACE = Cost("trace", "cost_G", lag=2, remains=True)  # harm of a step is in the next step's G
SCAR = Cost("scar", "cost_H", lag=2)  # and H grows by that G

SLOW_DECAY = 0.999
"""Value of delta in the slow-decay evaluation; 0.95 would forget everything in the washout."""
TOP_K = 8
"""Destinations that the top-k evaluation deforms."""
LOCAL_SHARE = 0.5
"""Share of the regions that touch V_sens which the local evaluation deforms."""
SHIELD_THRESHOLD = 0.5
"""Threshold of the fixed Shield: the largest expected sensitive mass that it allows, over the mass
under the aggressive action and `P0`."""


@dataclass(frozen=True)
class Method:
    """A row of the table."""

    name: str
    about: str
    """What the method does, in one line."""
    observe: str = "x"
    """What the policy sees: `x`, or `xGH` with the fields."""
    costs: tuple[Cost, ...] = ()
    """What the policy pays; each cost has a budget."""
    deformation: str = "off"
    """Kernel under which the policy is trained and evaluated; `off` is `P0`."""
    network: str = "mlp"
    """`mlp`, or `gru` for a policy with memory."""
    policy_of: str | None = None
    """The method whose trained policy this one evaluates; None for a method that is trained."""
    evaluation: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Options of the environment that differ from those of the policy's method."""
    shield: str | None = None
    """How the threshold of a shield around the policy is chosen: `fixed` or `matched`."""


_ROWS = (
    Method("GE", "reward only"),
    Method("SS", "Lagrangian penalty on harm as it arrives", costs=(HARM,)),
    Method("DR", "Lagrangian penalty on harm carried back over its delay", costs=(DELAYED_HARM,)),
    Method(
        "PM-ST",
        "sees and pays for the fields, samples from the stationary kernel",
        observe="xGH",
        costs=(TRACE, SCAR),
    ),
    Method("PM-RNN", "a GRU with the costs of DR", costs=(DELAYED_HARM,), network="gru"),
    Method(
        "RAPO",
        "sees and pays for the fields, samples from the deformed kernel",
        observe="xGH",
        costs=(TRACE, SCAR),
        deformation="full",
    ),
    Method("RAPO-x", "RAPO that does not see the fields", costs=(TRACE, SCAR), deformation="full"),
    Method(
        "Shield",
        "GE's policy, actions blocked by rollouts under P0, fixed threshold",
        policy_of="GE",
        shield="fixed",
    ),
    Method(
        "Shield-UM",
        "the same, threshold tuned to RAPO's replay return",
        policy_of="GE",
        shield="matched",
    ),
    Method(
        "off@rep",
        "RAPO, deformation switched off in Replay",
        observe="xGH",
        deformation="full",
        policy_of="RAPO",
        evaluation={"deform_phases": (True, True, False)},
    ),
    Method(
        "slow-decay",
        f"RAPO, scars decay with delta = {SLOW_DECAY}",
        observe="xGH",
        deformation="full",
        policy_of="RAPO",
        evaluation={"delta": SLOW_DECAY},
    ),
    Method(
        "top-k",
        f"RAPO, the {TOP_K} likeliest destinations deformed",
        observe="xGH",
        deformation="full",
        policy_of="RAPO",
        evaluation={"deformation": f"topk:{TOP_K}"},
    ),
    Method(
        "local",
        f"RAPO, {LOCAL_SHARE:.0%} of the sensitive regions deformed",
        observe="xGH",
        deformation="full",
        policy_of="RAPO",
        evaluation={"deformation": f"local:{LOCAL_SHARE}"},
    ),
)

METHODS: Mapping[str, Method] = MappingProxyType({row.name: row for row in _ROWS})
"""All rows by name."""


def method_named(name: str) -> Method:
    """A row by its name, spelled as in the paper (case does not matter)."""
    spelled = {known.lower(): known for known in METHODS}
    if str(name).lower() in spelled:
        return METHODS[spelled[str(name).lower()]]
    near = get_close_matches(str(name).lower(), spelled, n=1)
    hint = f"; did you mean {spelled[near[0]]}?" if near else ""
    raise UserError(f"no method is called {name!r}; known are {', '.join(METHODS)}{hint}")
