"""Prometheus metrics. None has a region in its labels: regions have no end.

The regions with the least psi are served by `GET /v1/regions?top=N` instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from rapo.gate.gate import Gate
from rapo.gate.state import State

CONTENT_TYPE = CONTENT_TYPE_LATEST
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """Counts of one service, in a registry of its own: several may live in a process."""

    def __init__(self, gate: Gate) -> None:
        self.registry = CollectorRegistry()
        self._decisions = Counter(
            "rapo_gate_decisions", "Decisions answered, by mode.", ["mode"], registry=self.registry
        )
        self._reports = Counter(
            "rapo_gate_reports", "Reports answered, by status.", ["status"], registry=self.registry
        )
        self._refused = Counter(
            "rapo_gate_refused", "Requests refused or failed, by status code.", ["code"],
            registry=self.registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "rapo_gate_request_seconds", "Time from a request's head to its answer.", ["path"],
            registry=self.registry, buckets=_BUCKETS,
        )  # fmt: skip
        self._by_path: dict[str, Histogram] = {}
        self.registry.register(_Gauges(gate))

    def decided(self, mode: str) -> None:
        """Count a decision."""
        self._decisions.labels(mode).inc()

    def reported(self, status: str) -> None:
        """Count a report."""
        self._reports.labels(status).inc()

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request; `path` is its route."""
        timer = self._by_path.get(path)
        if timer is None:
            timer = self._by_path[path] = self._seconds.labels(path)
        timer.observe(seconds)
        if status >= 400:
            self._refused.labels(str(status)).inc()

    def page(self) -> bytes:
        """What a scraper gets; takes the gate's lock for a moment."""
        return generate_latest(self.registry)


class _Gauges(Collector):
    """Figures of the gate, read when somebody asks."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def describe(self) -> list[Metric]:
        """Nothing in advance: reading the gate to learn the names would be for nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Each figure as a gauge."""
        health = self._gate.health()
        values = {
            "up": ("1 while answers are fresh.", float(health["status"] in ("ok", "ahead"))),
            "clock_ahead_seconds": (
                "How far the last tick is in the future.",
                health["seconds_ahead"],
            ),
            "revision": ("State that decisions are made from.", health["revision"]),
            "position": ("Events that the state has taken in.", health["position"]),
            "lag_events": ("Events of the log that it has not.", health["behind"]),
            "tick": ("Last tick that was folded.", health["tick"]),
            "writer_queue": ("Jobs that wait for the next commit.", health["waiting"]),
            **self._gate.read(_figures),
        }
        for name, (about, value) in values.items():
            yield GaugeMetricFamily(f"rapo_gate_{name}", about, value=float(value))


def _figures(state: State) -> dict[str, tuple[str, float]]:
    """Figures of the last tick that closed."""
    course = state.traffic.course
    last = course[-1] if course else state.traffic.now
    decisions, regions = max(last.decisions, 1), max(len(state.regions), 1)
    return {
        "regions": ("Regions that decisions have had.", len(state.regions)),
        "scar_mass": ("Sum of H over regions.", float(state.fold.H.sum())),
        "gating_tv": ("Mean total variation of a decision, last tick.", last.tv / decisions),
        "floor_share": ("Share of regions at psi_min, last tick.", last.floored / regions),
        "saturated_share": ("Share of decisions without a way out.", last.saturated / decisions),
        "unknown": ("Candidates of regions not known before, last tick.", last.unknown),
        "review_queue": ("Reports that wait for a reviewer.", len(state.review)),
        "bands_left": ("Bands that the last tick left.", len(state.bands_left)),
    }
