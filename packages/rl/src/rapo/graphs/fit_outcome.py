"""`Fit`: what was chosen for one graph, and what was measured with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError
from rapo_core.params import FieldParams


@dataclass(frozen=True, eq=False)
class Fit:
    """Regions and constants chosen for one graph, and what a short run of them measured."""

    regions: npt.NDArray[np.int32]
    """(n,) region of every node."""
    params: FieldParams
    """The constants given, with the tau that was found."""
    odds: float
    """Mean OddsRatio of Replay in the run that settled it. What is fitted to theta is calibrated:
    do not read it as a result."""
    odds_same: float
    """The same over Replay's first 50 steps, where scars act alone."""
    odds_other: float
    """That under another stimulus with the same memory; NaN with one stimulus."""
    mass: float
    """Sensitive mass of Replay over that of `P0` with the same draws."""
    share: float
    """Share of the nominal harm that can scar."""
    reached: bool
    """Whether the odds came down to theta; if not, this is the strongest that was tried."""
    moved: str
    """What was fitted: `tau and regions`, `tau` (regions were given) or `regions` (tau was)."""
    spec: str | None
    """The regions as a spec; None for an array or a callable."""
    free_selectivity: float
    """Selectivity of the fit whose tau may move, where this one's may not; else its own."""
    runs: int
    """Short runs that it took."""
    theta: float
    graph_hash: str

    @property
    def selectivity(self) -> float:
        """Odds under another stimulus minus odds under the same one: what "localised" means."""
        return self.odds_other - self.odds_same

    @property
    def count(self) -> int:
        """Number of regions."""
        return int(self.regions.max()) + 1

    def in_force(self, regions: npt.NDArray[np.int32], params: FieldParams) -> bool:
        """Whether these are the regions and constants that were fitted."""
        return self.params == params and np.array_equal(self.regions, regions)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, regions as a list; NaN as None."""
        return {
            **{k: _plain(v) for k, v in self.__dict__.items() if k not in ("regions", "params")},
            "params": self.params.to_dict(),
            "regions": self.regions.tolist(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Fit:
        """Build from what `to_dict` gave."""
        known = set(cls.__dataclass_fields__)
        if set(values) != known:
            raise UserError(f"unknown or missing entries {sorted(set(values) ^ known)} in a fit")
        whole: dict[str, Any] = {
            k: float("nan") if v is None and k != "spec" else v for k, v in values.items()
        }
        regions = np.asarray(values["regions"], np.int32)
        regions.setflags(write=False)
        return cls(
            **{**whole, "regions": regions, "params": FieldParams.from_dict(values["params"])}
        )

    def outcome(self) -> dict[str, float]:
        """What `info` and manifests tell: regions, tau, odds, share and selectivity."""
        return {
            "regions": self.count,
            "tau": self.params.tau,
            "odds": self.odds,
            "share": self.share,
            "selectivity": self.selectivity,
            "reached": self.reached,
        }

    def __str__(self) -> str:
        pieces = f" ({self.spec})" if self.spec else ""
        cost = ""
        if self.moved == "regions":
            cost = f" (tau may not move; if it might, {self.free_selectivity:.2f})"
        short = "" if self.reached else f", NOT the {self.theta:g} asked for"
        plural = "" if self.count == 1 else "s"
        return (
            f"{self.count:,} region{plural}{pieces}, tau {self.params.tau:.3g}: odds "
            f"{self.odds:.2f} (calibrated{short}), {np.nan_to_num(self.share):.0%} of the harm can "
            f"scar, {self.mass:.0%} of P0's sensitive mass stays, selectivity "
            f"{self.selectivity:.2f}{cost}"
        )

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fit) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.graph_hash, self.params, self.regions.tobytes()))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value
