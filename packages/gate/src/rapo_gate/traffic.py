"""What passes through the gate: sums per region, counts per tick, bands, outcomes."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, field, fields
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.jit import kernel
from rapo_gate.cells import grown
from rapo_gate.config import GateConfig
from rapo_gate.exposure import Piece
from rapo_gate.ledger import UNIT

HISTORY = 2000
"""Ticks of the course that is kept for charts."""
SMOOTHING = 0.05
"""Weight of the newest tick in the moving mean of reports."""
FEWEST_TICKS = 20
"""Ticks before the moving mean is trusted."""


@kernel
def _units(p: Any, psi: Any, enforced: bool, units: Any) -> None:
    """What a decision served of each candidate, in whole UNITs."""
    total = 0.0
    for i in range(p.size):
        total += p[i] * psi[i] if enforced else p[i]
    for i in range(p.size):
        weight = p[i] * psi[i] if enforced else p[i]
        units[i] = np.int64(np.rint(weight / total * UNIT))


def served_units(
    p: npt.NDArray[np.float64], psi: npt.NDArray[np.float64], enforced: bool
) -> npt.NDArray[np.int64]:
    """What a decision exposes of each candidate, in UNITs; always the same for the same one."""
    units = np.empty(p.size, np.int64)
    _units(p, psi, enforced, units)
    return units


@kernel
def _account(
    regions: Any, p: Any, psi: Any, enforced: bool, proposed: Any, gated: Any, served: Any
) -> tuple[float, float]:  # fmt: skip
    """Add one decision to the counts; returns its total variation and its largest psi.

    A region may occur many times: sums run candidate by candidate.
    """
    total, passed, most, tv = 0.0, 0.0, 0.0, 0.0
    for i in range(p.size):
        total += p[i]
        passed += p[i] * psi[i]
        if p[i] > 0 and psi[i] > most:
            most = psi[i]
    for i in range(p.size):
        before, after = p[i] / total, p[i] * psi[i] / passed
        tv += abs(after - before)
        r = regions[i]
        proposed[r] += before
        gated[r] += after
        served[r] += after if enforced else before
    return tv / 2, most


@dataclass(slots=True)
class TickCount:
    """What happened in one tick."""

    tick: int
    decisions: int = 0
    enforced: int = 0
    tv: float = 0.0
    """Sum over decisions of the total variation between `p` and the gated law."""
    saturated: int = 0
    unknown: int = 0
    """Candidates of regions never seen before."""
    reports: int = 0
    lag: float = 0.0
    """Sum over reports of the seconds between `at` and arrival."""
    scar_mass: float = 0.0
    floored: int = 0
    """Regions at psi_min."""
    reach: int = 0
    """Regions with at least one expected impression."""
    sensitive: float = 0.0
    """Impressions of scarred regions and of those labelled sensitive."""


@dataclass(slots=True)
class Appearance:
    """One stay of a stimulus, from its first decision to a gap of D ticks."""

    first: int
    last: int
    peak_reach: int = 0
    total_reach: int = 0
    sensitive: float = 0.0


@dataclass(slots=True)
class _Now:
    """A stimulus in the current tick."""

    tick: int
    impressions: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


class Traffic:
    """Counts that decisions and reports leave; none of them touches the fields."""

    def __init__(self) -> None:
        self.proposed = np.zeros(0)
        """Sum of `p` per region."""
        self.gated = np.zeros(0)
        """Sum of the gated law per region, served or not."""
        self.served = np.zeros(0)
        """Sum of what was served per region."""
        self.labelled = np.zeros(0, np.bool_)
        """Whether a region is labelled sensitive."""
        self.course: deque[TickCount] = deque(maxlen=HISTORY)
        self.now = TickCount(0)
        self.reports_mean = 0.0
        self.ticks = 0
        self.appearances: dict[str, list[Appearance]] = {}
        self._current: dict[str, _Now] = {}

    def grow(self, regions: int) -> None:
        """Make room for regions."""
        for name in ("proposed", "gated", "served", "labelled"):
            setattr(self, name, grown(getattr(self, name), regions, 0))

    def mark(self, sensitive: dict[int, bool]) -> None:
        """Say whether regions are labelled sensitive."""
        self.labelled[list(sensitive)] = list(sensitive.values())

    def decide(
        self,
        regions: npt.NDArray[np.int32],
        p: npt.NDArray[np.float64],
        psi: npt.NDArray[np.float64],
        tick: int,
        enforced: bool,
        stimulus: str | None,
        config: GateConfig,
    ) -> None:
        """Count a decision of a tick."""
        tv, most = _account(regions, p, psi, enforced, self.proposed, self.gated, self.served)
        self.now.decisions += 1
        self.now.enforced += enforced
        self.now.tv += tv
        self.now.saturated += most <= config.saturation_psi
        if stimulus is not None:
            self._show(stimulus, regions, p * psi if enforced else p, tick)

    def expose(
        self,
        regions: npt.NDArray[np.int32],
        served: npt.NDArray[np.float64],
        shown: npt.NDArray[np.int32],
        weight: npt.NDArray[np.float64],
    ) -> None:
        """Count what a decision really showed, each region with its share, instead of its law."""
        np.subtract.at(self.served, regions, served)
        np.add.at(self.served, shown, weight)

    def _show(
        self, stimulus: str, regions: npt.NDArray[np.int32], weight: npt.NDArray[Any], tick: int
    ) -> None:
        current = self._current.get(stimulus)
        if current is None:
            current = self._current[stimulus] = _Now(tick)
        if current.impressions.size < self.proposed.size:
            longer = np.zeros(self.proposed.size)
            longer[: current.impressions.size] = current.impressions
            current.impressions = longer
        np.add.at(current.impressions, regions, weight / weight.sum())

    def close_tick(
        self,
        tick: int,
        shown: Piece,
        scarred: npt.NDArray[np.bool_],
        scar_mass: float,
        floored: int,
        config: GateConfig,
    ) -> dict[str, str]:
        """End the current tick; returns the bands that it left, each with what was seen.

        Args:
            tick: which.
            shown: regions and their exposure in it.
            scarred: whether each known region has a scar.
            scar_mass: sum of the scars.
            floored: regions at psi_min.
            config: settings.
        """
        now, sensitive = self.now, scarred | self.labelled[: scarred.size]
        now.tick, now.scar_mass, now.floored = tick, scar_mass, floored
        regions, units = shown
        now.reach = int((units >= UNIT).sum())
        now.sensitive = float(units[sensitive[regions]].sum() / UNIT)
        for stimulus, current in self._current.items():
            self._end_of_tick(stimulus, current, sensitive, config.D)
        self._current = {}
        left = self._left_bands(config)
        self.ticks += 1
        weight = max(SMOOTHING, 1 / self.ticks)
        self.reports_mean += weight * (now.reports - self.reports_mean)
        if now.decisions or now.reports or scar_mass or not self.course:
            self.course.append(now)
        self.now = TickCount(tick + 1)
        return left

    def _left_bands(self, config: GateConfig) -> dict[str, str]:
        now, left = self.now, {}
        if now.scar_mass > config.band_scar_mass:
            left["scar mass"] = f"{now.scar_mass:.3g} > {config.band_scar_mass:g}"
        decisions = max(now.decisions, 1)
        if now.tv / decisions > config.band_gating:
            left["gating"] = f"mean TV {now.tv / decisions:.3f} > {config.band_gating:g}"
        if now.saturated / decisions > config.band_saturated:
            left["saturation"] = (
                f"{now.saturated} of {now.decisions} decisions had no candidate above psi "
                f"{config.saturation_psi:g}: the gate gives their mass back"
            )
        usual = max(self.reports_mean, 1.0)
        most = usual + config.band_reports * sqrt(usual)
        if self.ticks >= FEWEST_TICKS and now.reports > most:
            left["reports"] = f"{now.reports} in a tick, usual are {usual:.1f}"
        return left

    def _end_of_tick(
        self, stimulus: str, current: _Now, sensitive: npt.NDArray[np.bool_], gap: int
    ) -> None:
        stays = self.appearances.setdefault(stimulus, [])
        if not stays or current.tick - stays[-1].last > gap:
            stays.append(Appearance(current.tick, current.tick))
        stay = stays[-1]
        reach = int((current.impressions >= 1).sum())
        stay.last = current.tick
        stay.peak_reach = max(stay.peak_reach, reach)
        stay.total_reach += reach
        size = min(sensitive.size, current.impressions.size)
        stay.sensitive += float(current.impressions[:size][sensitive[:size]].sum())

    def dump(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Everything, as plain values and arrays."""
        values = {
            "course": [asdict(c) for c in self.course],
            "now": asdict(self.now),
            "reports_mean": self.reports_mean,
            "ticks": self.ticks,
            "appearances": {k: [asdict(a) for a in v] for k, v in self.appearances.items()},
            "current": {k: v.tick for k, v in self._current.items()},
        }
        arrays: dict[str, npt.NDArray[Any]] = {
            name: getattr(self, name) for name in ("proposed", "gated", "served")
        }
        for i, stimulus in enumerate(self._current):
            arrays[f"stimulus {i}"] = self._current[stimulus].impressions
        return values, arrays

    @classmethod
    def load(cls, values: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Traffic:
        """What `dump` gave."""
        traffic = cls()
        known = {f.name for f in fields(TickCount)}
        traffic.course.extend(TickCount(**{k: c[k] for k in known}) for c in values["course"])
        traffic.now = TickCount(**values["now"])
        traffic.reports_mean, traffic.ticks = values["reports_mean"], values["ticks"]
        traffic.appearances = {
            k: [Appearance(**a) for a in v] for k, v in values["appearances"].items()
        }
        traffic.proposed, traffic.gated = arrays["proposed"], arrays["gated"]
        traffic.served = arrays["served"]
        traffic.grow(traffic.proposed.size)
        traffic._current = {
            stimulus: _Now(tick, arrays[f"stimulus {i}"])
            for i, (stimulus, tick) in enumerate(values["current"].items())
        }
        return traffic
