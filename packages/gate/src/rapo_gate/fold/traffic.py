"""What passes through the gate: sums per region, counts per tick, bands, outcomes."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, fields
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.jit import kernel
from rapo_gate.config import GateConfig
from rapo_gate.fold.exposure import Piece
from rapo_gate.fold.ledger import UNIT
from rapo_gate.fold.records import grown

HISTORY = 2000
"""Ticks of the course that is kept for charts."""
SMOOTHING = 0.05
"""Weight of the newest tick in the moving mean of reports."""
FEWEST_TICKS = 20
"""Ticks before the moving mean is trusted."""
ONE_IMPRESSION = 1 - 1e-9
"""Expected impressions from which on a region is reached; sums of shares are rounded."""
MOST_STIMULI = 1000
"""Stimuli that are remembered; of more, those that were not shown for longest are forgotten."""
MOST_PAIRS = 1 << 20
"""Pairs of a stimulus and a region that are counted in one tick."""


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
class Stay:
    """One stay of a stimulus, from its first decision to a gap of D ticks."""

    first: int
    last: int
    peak_reach: int = 0
    total_reach: int = 0
    sensitive: float = 0.0


@dataclass(slots=True)
class Appearances:
    """The first and the newest stay of a stimulus, which RSD's ratios compare, and their number."""

    first: Stay
    newest: Stay
    count: int = 1


class Impressions:
    """What stimuli were shown in the current tick: only regions that any of them reached.

    A tick has at most `MOST_PAIRS` pairs of a stimulus and a region; what comes beyond them is not
    counted.
    """

    def __init__(self) -> None:
        self.shown: dict[str, list[tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]]] = {}
        """By stimulus, regions and their impressions, in the order in which they came."""
        self._pairs = 0

    def add(
        self, stimulus: str, regions: npt.NDArray[np.int32], weight: npt.NDArray[np.float64]
    ) -> None:
        """Add impressions to a stimulus, or take them from it with a negative weight."""
        if self._pairs + regions.size > MOST_PAIRS:
            self._pairs = sum(self.of(name)[0].size for name in list(self.shown))
        if self._pairs + regions.size <= MOST_PAIRS:
            self.shown.setdefault(stimulus, []).append((regions.astype(np.int32), weight))
            self._pairs += regions.size

    def of(self, stimulus: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Regions that a stimulus reached, each once in ascending order, and its impressions."""
        regions, weights = (np.concatenate(c) for c in zip(*self.shown[stimulus], strict=True))
        regions, place = np.unique(regions, return_inverse=True)
        whole = regions, np.bincount(place, weights, regions.size).astype(np.float64)
        self.shown[stimulus] = [whole]
        return whole


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
        self.appearances: dict[str, Appearances] = {}
        """By stimulus; the one that was shown last comes last."""
        self.impressions = Impressions()

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
        enforced: bool,
        stimulus: str | None,
        config: GateConfig,
    ) -> None:
        """Count a decision."""
        tv, most = _account(regions, p, psi, enforced, self.proposed, self.gated, self.served)
        self.now.decisions += 1
        self.now.enforced += enforced
        self.now.tv += tv
        self.now.saturated += most <= config.saturation_psi
        if stimulus is not None:
            weight = p * psi if enforced else p
            self.impressions.add(stimulus, regions, weight / weight.sum())

    def expose(
        self,
        regions: npt.NDArray[np.int32],
        served: npt.NDArray[np.float64],
        shown: npt.NDArray[np.int32],
        weight: npt.NDArray[np.float64],
        stimulus: str | None,
    ) -> None:
        """Count what a decision really showed, each region with its share, not what it served.

        `stimulus` is that of a decision of the current tick, None for any other decision.
        """
        np.subtract.at(self.served, regions, served)
        np.add.at(self.served, shown, weight)
        if stimulus is not None:
            self.impressions.add(stimulus, regions, -served)
            self.impressions.add(stimulus, shown, weight)

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
        for stimulus in self.impressions.shown:
            self._appear(stimulus, tick, sensitive, config.D)
        self.impressions = Impressions()
        while len(self.appearances) > MOST_STIMULI:
            del self.appearances[next(iter(self.appearances))]
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

    def _appear(self, stimulus: str, tick: int, sensitive: npt.NDArray[np.bool_], gap: int) -> None:
        """Add a tick of a stimulus to its newest stay, or to a new one after a gap."""
        known = self.appearances.pop(stimulus, None)
        if known is None:
            stay = Stay(tick, tick)
            known = Appearances(stay, stay)
        elif tick - known.newest.last > gap:
            known.newest, known.count = Stay(tick, tick), known.count + 1
        self.appearances[stimulus] = known
        regions, impressions = self.impressions.of(stimulus)
        stay, reach = known.newest, int((impressions >= ONE_IMPRESSION).sum())
        stay.last = tick
        stay.peak_reach = max(stay.peak_reach, reach)
        stay.total_reach += reach
        stay.sensitive += float(impressions[sensitive[regions]].sum())

    def dump(self, regions: int) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Everything that is known of so many regions, as plain values and arrays."""
        values = {
            "course": [asdict(c) for c in self.course],
            "now": asdict(self.now),
            "reports_mean": self.reports_mean,
            "ticks": self.ticks,
            "appearances": {k: [asdict(a.first), asdict(a.newest), a.count]
                            for k, a in self.appearances.items()},
            "stimuli": list(self.impressions.shown),
        }  # fmt: skip
        arrays: dict[str, npt.NDArray[Any]] = {
            name: getattr(self, name)[:regions] for name in ("proposed", "gated", "served")
        }
        for i, stimulus in enumerate(self.impressions.shown):
            arrays[f"regions {i}"], arrays[f"impressions {i}"] = self.impressions.of(stimulus)
        return values, arrays

    @classmethod
    def load(cls, values: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Traffic:
        """What `dump` gave."""
        traffic = cls()
        known = {f.name for f in fields(TickCount)}
        traffic.course.extend(TickCount(**{k: c[k] for k in known}) for c in values["course"])
        traffic.now = TickCount(**values["now"])
        traffic.reports_mean, traffic.ticks = values["reports_mean"], values["ticks"]
        for stimulus, (first, newest, count) in values["appearances"].items():
            stays = Stay(**first), Stay(**newest)
            traffic.appearances[stimulus] = Appearances(stays[0], stays[count > 1], count)
        traffic.proposed, traffic.gated = arrays["proposed"], arrays["gated"]
        traffic.served = arrays["served"]
        traffic.grow(traffic.proposed.size)
        for i, stimulus in enumerate(values["stimuli"]):
            traffic.impressions.add(stimulus, arrays[f"regions {i}"], arrays[f"impressions {i}"])
        return traffic
