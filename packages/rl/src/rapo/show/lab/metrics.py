"""The metrics and curves of a variant: those of `rapo.rsd.evaluate`, as the page shows them."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rapo.rsd.frame import against
from rapo.rsd.result import RSDResult
from rapo.rsd.runner import evaluate
from rapo.show.lab.latest_job import OnProgress
from rapo.show.lab.policies import LoadedPolicy, load_policy
from rapo.show.lab.request import Episodes, Variant, blame
from rapo.show.lab.sources import Source

ROWS = (
    "RAG", "AUC_R", "SM_R", "OddsRatio", "Selectivity", "SM_vs_P0", "ReplayReturn", "ReturnKept",
    "ScarMass",
)  # fmt: skip
"""Metrics that are shown, in this order."""
CURVES = ("reach", "sensitive_mass", "odds_ratio", "scar_mass")


@dataclass(frozen=True)
class Metrics:
    """The metrics of a variant, and what they were computed from."""

    result: RSDResult
    point: str
    """The operating point, in a sentence."""
    regions: int
    rows: list[dict[str, Any]]
    """Mean and 95% interval of every metric of `ROWS`."""

    def curves(self, shown: int) -> dict[str, Any]:
        """(T,) float32 each: the mean over the episodes, and the shown episode."""
        out = {}
        for name in CURVES:
            series = self.result.traces[name]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # a step where nothing is defined
                out[f"{name}.mean"] = np.nanmean(series, axis=0).astype(np.float32)
            out[f"{name}.shown"] = series[shown]
        return out


class RunCache:
    """Recent runs, so that moving a slider repeats only what it changes.

    P0 does not use psi: w_G, w_H and psi_min are not part of a P0 run's key. A constant action does
    the same under P0 with any constants; only the scars differ, and the reference run's are not
    read.
    """

    def __init__(self, size: int = 36) -> None:
        self._size = size
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The entry of a key; `make` is called if there is none."""
        if key not in self._entries:
            self._entries[key] = make()
        self._entries.move_to_end(key)
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)
        return self._entries[key]


_CACHE = RunCache()


def summary_of(result: RSDResult) -> dict[str, dict[str, Any]]:
    """Means over episodes; of heavy tails, ratios of means where the metric is a ratio."""
    return {**result.summary(), **(result.pooled() if result.heavy_tailed else {})}


def measure(
    source: Source,
    variant: Variant,
    episodes: Episodes,
    on_progress: OnProgress = lambda done, total: None,
) -> Metrics:
    """The metrics of a variant; what recent runs have in common is not run again.

    Args:
        source: the graph or platform.
        variant: the setting.
        episodes: which episodes.
        on_progress: called with what is done and how much there is; it may raise to end the run.
    """
    which = source.serial, episodes.count, episodes.seed, episodes.stimulus, episodes.coupled
    return _CACHE.get(  # type: ignore[no-any-return]
        ("metrics", which, variant), lambda: _measure(source, variant, episodes, which, on_progress)
    )


def _measure(
    source: Source, variant: Variant, episodes: Episodes, which: Hashable, on_progress: OnProgress
) -> Metrics:
    loaded = load_policy(source, variant)
    P0 = variant.nominal
    whose = P0.without_psi if loaded.action is None else P0.policy
    reference = "reference", which, whose
    runs = 1 if variant.scope == "off" or reference in _CACHE else 2

    def run(part: Variant, before: int) -> RSDResult:
        key = part.without_psi if part.scope == "off" else part
        report = lambda done, total: on_progress(before * total + done, runs * total)  # noqa: E731
        result: RSDResult = _CACHE.get(
            ("run", which, key), lambda: _run(source, part, loaded, episodes, report)
        )
        return result

    result = run(variant, 0)
    nominal = _CACHE.get(reference, lambda: result if variant.scope == "off" else run(P0, before=1))
    result = against(result, result if variant.scope == "off" else nominal)
    env: Any = source.make(variant, loaded.observe)
    summary = summary_of(result)
    rows = [_row(name, summary[name]) for name in ROWS]
    return Metrics(result, source.point(env), int(np.shape(env.engine.G)[1]), rows)


def _run(
    source: Source,
    variant: Variant,
    loaded: LoadedPolicy,
    episodes: Episodes,
    on_progress: OnProgress,
) -> RSDResult:
    """The diagnostic of a variant, without its `P0` reference run."""
    env: Any = source.make(variant, loaded.observe)
    result = blame(
        "policy",
        lambda: evaluate(
            env, loaded.policy, selectivity=True, progress=on_progress, **episodes.options
        ),
    )
    return replace(result, cascade=None, laws=None)  # the page shows neither, and both are large


def _row(name: str, metric: dict[str, Any]) -> dict[str, Any]:
    low, high = metric["ci95"]
    return {
        "name": name, "mean": metric["mean"], "low": low, "high": high, "pooled": "ratio" in metric,
        "undefined": metric["undefined"],
    }  # fmt: skip
