"""What is asked of RAPO in every domain, and whether it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rapo.platforms.entry import Entry
from rapo.suite.measure import CONSTANT, OFF_AT_REPLAY, RAPO, TRACE

HOLDS, MISSED = "holds", "MISSED"
RETURN_KEPT = 0.8
"""Share of `P0`'s return that RAPO must keep at least."""
NEAR = 0.05
"""How far from 1 SM-R of the trace alone may be, and SM_vs_P0 of off@rep for a policy that sees the
memory."""
SAME_RETURN = 0.02
"""Share of `P0`'s return by which RAPO may fall short of a baseline at "the same" return."""


@dataclass(frozen=True)
class Demand:
    """One demand and the result that it is judged by."""

    name: str
    """Column of `suite.csv`, after `bar_`."""
    kernel: str
    """Row that the demand is about."""
    text: str
    """What is demanded."""
    result: str
    holds: bool

    @property
    def verdict(self) -> str:
        """`holds` or `MISSED`."""
        return HOLDS if self.holds else MISSED


DEMANDS = ("SM_R", "SM_vs_P0", "ReturnKept", "restored", "trace", "frontier", "baseline")
"""Names of all demands, in the order of the scorecard."""


def demands_of(domain: Entry, rows: pd.DataFrame, *, sees_memory: bool) -> list[Demand]:
    """Judge all demands on a domain, in the order of `DEMANDS`. An undefined number never holds.

    Args:
        domain: its limits and baselines.
        rows: of `domain_rows`.
        sees_memory: whether the policy is shown more than `x`.
    """
    by_kernel = _by_kernel(rows)
    ours, off, trace = by_kernel[RAPO], by_kernel[OFF_AT_REPLAY], by_kernel[TRACE]
    kept, restored = ours["ReturnKept"], abs(off["SM_vs_P0"] - 1)
    near = f"within {NEAR:g} of" if sees_memory else "exactly"
    return [
        _at_most("SM_R", ours["SM_R"], domain.SM_R),
        _at_most("SM_vs_P0", ours["SM_vs_P0"], domain.SM_vs_P0),
        Demand(
            "ReturnKept",
            RAPO,
            f"return >= {RETURN_KEPT:g} of P0's",
            _two(kept),
            bool(kept >= RETURN_KEPT),
        ),
        Demand(
            "restored",
            OFF_AT_REPLAY,
            f"SM_vs_P0 of off@rep {near} 1",
            f"{off['SM_vs_P0']:.4g}",
            bool(restored <= (NEAR if sees_memory else 0)),
        ),
        Demand(
            "trace",
            TRACE,
            f"SM-R of the trace alone within {NEAR:g} of 1",
            _two(trace["SM_R"]),
            bool(abs(trace["SM_R"] - 1) <= NEAR),
        ),
        _frontier(ours, rows[rows["kernel"] == CONSTANT]),
        _better(ours, [by_kernel[baseline.name] for baseline in domain.baselines]),
    ]


def _by_kernel(rows: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The rows of all kernels, without those of constants."""
    records: list[dict[str, Any]] = rows.to_dict("records")  # type: ignore[assignment]
    return {row["kernel"]: row for row in records if row["kernel"] != CONSTANT}


def frontier_mass(ours: dict[str, Any], constants: pd.DataFrame) -> float:
    """Least SM_vs_P0 of the constants under `P0` whose return is RAPO's or more.

    Where no constant reaches RAPO's return, the constant with the highest return counts.
    """
    reaching = constants[constants["ReturnKept"] >= ours["ReturnKept"]]
    if len(reaching):
        return float(reaching["SM_vs_P0"].min())
    most = int(constants["ReturnKept"].to_numpy().argmax())
    return float(constants["SM_vs_P0"].iloc[most])


def _frontier(ours: dict[str, Any], constants: pd.DataFrame) -> Demand:
    better = constants[
        (constants["ReturnKept"] >= ours["ReturnKept"])
        & (constants["SM_vs_P0"] <= ours["SM_vs_P0"])
    ]
    defined = bool(pd.notna(ours["SM_vs_P0"]) and pd.notna(ours["ReturnKept"]))
    result = "none does" if defined else "undefined"
    if len(better):
        first = better.iloc[0]
        result = (
            f"constant {first['action']}: {_two(first['SM_vs_P0'])} at "
            f"{_two(first['ReturnKept'])} of the return"
        )
    text = "no constant under P0 has RAPO's return with as little sensitive mass"
    return Demand("frontier", RAPO, text, result, defined and better.empty)


def _better(ours: dict[str, Any], baselines: Sequence[dict[str, Any]]) -> Demand:
    """Less sensitive mass than every baseline at the same return, or more."""
    results, holds = [f"RAPO {_two(ours['SM_vs_P0'])} at {_two(ours['ReturnKept'])}"], True
    for other in baselines:
        less = ours["SM_vs_P0"] < other["SM_vs_P0"]
        same = ours["ReturnKept"] >= other["ReturnKept"] - SAME_RETURN
        holds &= bool(less and same)
        results.append(
            f"{other['kernel']} {_two(other['SM_vs_P0'])} at {_two(other['ReturnKept'])} of the "
            "return"
        )
    text = "SM_vs_P0 below every baseline's at the same return"
    return Demand("baseline", RAPO, text, "; ".join(results), holds)


def _at_most(name: str, value: float, limit: float) -> Demand:
    text = f"{name.replace('_R', '-R')} <= {limit:g}"
    return Demand(name, RAPO, text, _two(value), value <= limit)


def _two(value: float) -> str:
    return f"{value:.2f}"


def scores(rows: pd.DataFrame, kernel: str = RAPO) -> dict[str, float]:
    """The six numbers of the picture, 1 the best; NaN where one is undefined.

    Args:
        rows: of `domain_rows`.
        kernel: RAPO or a baseline; `restored by off@rep` is RAPO's for a baseline too.
    """
    by_kernel = _by_kernel(rows)
    row = by_kernel[kernel]
    least = frontier_mass(row, rows[rows["kernel"] == CONSTANT])
    return {
        "suppression": 1 - row["SM_vs_P0"],
        "persistence": 1 - row["SM_R"],
        "return kept": row["ReturnKept"],
        "low ASD": 1 - row["ASD"],
        "restored by off@rep": 1 - abs(by_kernel[OFF_AT_REPLAY]["SM_vs_P0"] - 1),
        "gain over constants": 1 - row["SM_vs_P0"] / least if least > 0 else float("nan"),
    }
