"""What is asked of RAPO in every domain, and whether it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rapo.suite.domains import Domain
from rapo.suite.measure import CONSTANT, OFF_AT_REPLAY, RAPO, TRACE

HOLDS, MISSED = "holds", "MISSED"
RETURN_KEPT = 0.8
"""At least, of `P0`'s."""
NEAR = 0.05
"""How far from 1 the trace alone may replay, and off@rep restore a policy that sees the memory."""
SAME_RETURN = 0.02
"""Share of `P0`'s return by which RAPO may fall short of a baseline at "the same" return."""


@dataclass(frozen=True)
class Bar:
    """One demand and what was found."""

    name: str
    """Column of `suite.csv`, after `bar_`."""
    kernel: str
    """Row that it is about."""
    demand: str
    found: str
    holds: bool

    @property
    def verdict(self) -> str:
        """In a word."""
        return HOLDS if self.holds else MISSED


BARS = ("SM_R", "SM_vs_P0", "ReturnKept", "restored", "trace", "frontier", "baseline")
"""Names of all bars, in the order of the scorecard."""


def bars(domain: Domain, rows: pd.DataFrame, sees_memory: bool) -> list[Bar]:
    """All bars of a domain, in the order of `BARS`. An undefined number never holds.

    Args:
        domain: its limits and baselines.
        rows: of `domain_rows`.
        sees_memory: whether the policy is shown more than `x`.
    """
    of = _by_kernel(rows)
    ours, off, trace = of[RAPO], of[OFF_AT_REPLAY], of[TRACE]
    restored = abs(off["SM_vs_P0"] - 1)
    return [
        _at_most("SM_R", ours["SM_R"], domain.SM_R),
        _at_most("SM_vs_P0", ours["SM_vs_P0"], domain.SM_vs_P0),
        Bar("ReturnKept", RAPO, f"return >= {RETURN_KEPT:g} of P0's", _two(ours["ReturnKept"]),
            bool(ours["ReturnKept"] >= RETURN_KEPT)),
        Bar("restored", OFF_AT_REPLAY,
            f"SM_vs_P0 of off@rep {f'within {NEAR:g} of' if sees_memory else 'exactly'} 1",
            f"{off['SM_vs_P0']:.4g}", bool(restored <= (NEAR if sees_memory else 0))),
        Bar("trace", TRACE, f"SM-R of the trace alone within {NEAR:g} of 1", _two(trace["SM_R"]),
            bool(abs(trace["SM_R"] - 1) <= NEAR)),
        _frontier(ours, rows[rows["kernel"] == CONSTANT]),
        _better(ours, [of[baseline.name] for baseline in domain.baselines]),
    ]  # fmt: skip


def _by_kernel(rows: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The rows that are no constants."""
    found: list[dict[str, Any]] = rows.to_dict("records")  # type: ignore[assignment]
    return {row["kernel"]: row for row in found if row["kernel"] != CONSTANT}


def frontier_mass(ours: dict[str, Any], constants: pd.DataFrame) -> float:
    """Least SM_vs_P0 of a constant under `P0` with RAPO's return or more.

    Where no constant reaches that return, that of the constant with the most.
    """
    reaching = constants[constants["ReturnKept"] >= ours["ReturnKept"]]
    if len(reaching):
        return float(reaching["SM_vs_P0"].min())
    most = int(constants["ReturnKept"].to_numpy().argmax())
    return float(constants["SM_vs_P0"].iloc[most])


def _frontier(ours: dict[str, Any], constants: pd.DataFrame) -> Bar:
    beaten = constants[
        (constants["ReturnKept"] >= ours["ReturnKept"])
        & (constants["SM_vs_P0"] <= ours["SM_vs_P0"])
    ]
    words = "none does"
    if len(beaten):
        first = beaten.iloc[0]
        words = (
            f"constant {first['action']}: {_two(first['SM_vs_P0'])} at "
            f"{_two(first['ReturnKept'])} of the return"
        )
    known = bool(pd.notna(ours["SM_vs_P0"]) and pd.notna(ours["ReturnKept"]))
    demand = "no constant under P0 has RAPO's return with as little sensitive mass"
    return Bar("frontier", RAPO, demand, words if known else "undefined", known and beaten.empty)


def _better(ours: dict[str, Any], baselines: Sequence[dict[str, Any]]) -> Bar:
    """Less sensitive mass than every baseline at the same return, or more."""
    others, holds = [], True
    for other in baselines:
        less = ours["SM_vs_P0"] < other["SM_vs_P0"]
        same = ours["ReturnKept"] >= other["ReturnKept"] - SAME_RETURN
        holds &= bool(less and same)
        others.append(
            f"{other['kernel']} {_two(other['SM_vs_P0'])} at {_two(other['ReturnKept'])} of the "
            "return"
        )
    mine = f"RAPO {_two(ours['SM_vs_P0'])} at {_two(ours['ReturnKept'])}"
    demand = "SM_vs_P0 below every baseline's at the same return"
    return Bar("baseline", RAPO, demand, "; ".join([mine, *others]), holds)


def _at_most(name: str, value: float, limit: float) -> Bar:
    return Bar(name, RAPO, f"{name.replace('_R', '-R')} <= {limit:g}", _two(value), value <= limit)


def _two(value: float) -> str:
    return f"{value:.2f}"


def scores(domain: Domain, rows: pd.DataFrame, kernel: str = RAPO) -> dict[str, float]:
    """The six numbers of the picture, 1 the best; NaN where there is none.

    Args:
        domain: whose rows.
        rows: of `domain_rows`.
        kernel: RAPO, or a baseline: restored is RAPO's then too.
    """
    of = _by_kernel(rows)
    row = of[kernel]
    least = frontier_mass(row, rows[rows["kernel"] == CONSTANT])
    return {
        "suppression": 1 - row["SM_vs_P0"],
        "persistence": 1 - row["SM_R"],
        "return kept": row["ReturnKept"],
        "low ASD": 1 - row["ASD"],
        "restored by off@rep": 1 - abs(of[OFF_AT_REPLAY]["SM_vs_P0"] - 1),
        "gain over constants": 1 - row["SM_vs_P0"] / least if least > 0 else float("nan"),
    }
