"""The numbers and curves of a side: what `rapo.rsd.evaluate` finds, as the page shows it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rapo.rsd.frame import against
from rapo.rsd.result import RSDResult
from rapo.rsd.runner import evaluate
from rapo.show.lab.constant import run_constant
from rapo.show.lab.policies import Found, find_policy
from rapo.show.lab.request import Draws, Side, blamed
from rapo.show.lab.sources import GraphSource, Source

ROWS = (
    "RAG", "AUC_R", "SM_R", "OddsRatio", "Selectivity", "SM_vs_P0", "ReplayReturn", "ReturnKept",
    "ScarMass",
)  # fmt: skip
"""Metrics that are shown, in this order."""
CURVES = ("reach", "sensitive_mass", "odds_ratio", "scar_mass")
_KEPT = 12

Check = Callable[[], None]
Tell = Callable[[float], object]


@dataclass(frozen=True)
class Answer:
    """What was found for a side."""

    result: RSDResult
    point: str
    """The operating point, in a sentence."""
    regions: int
    rows: list[dict[str, Any]]
    """Value and 95% interval of every metric, see `numbers_of`."""

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


def numbers_of(result: RSDResult) -> dict[str, dict[str, Any]]:
    """Means over episodes; of heavy tails, ratios of means where there are such."""
    return {**result.summary(), **(result.pooled() if result.heavy_tailed else {})}


_RESULTS: OrderedDict[Any, Answer] = OrderedDict()
_RAN: OrderedDict[Any, RSDResult] = OrderedDict()
_TWINS: OrderedDict[Any, RSDResult] = OrderedDict()


def answer(
    source: Source, side: Side, draws: Draws, check: Check, tell: Tell = lambda share: None
) -> Answer:
    """Run the diagnostic of a side, or tell what is known of it.

    Args:
        source: where.
        side: the setting.
        draws: which episodes.
        check: called now and then; it may raise to end the run.
        tell: told now and then which share of the run is done.
    """
    key = (source.serial, side, draws.which)
    if key in _RESULTS:
        _RESULTS.move_to_end(key)
        return _RESULTS[key]
    runs = _Runs(source, draws, check, tell)
    found = find_policy(source, side)
    env: Any = source.make(side, found.observe)
    runs.expect(1 if side.scope == "off" or runs.knows_twin(side, found) else 2)
    ran = runs.of(side, found, env)
    result = against(ran, ran if side.scope == "off" else runs.twin(side, found))
    numbers = numbers_of(result)
    rows = [{"name": name, **_plain(numbers[name])} for name in ROWS]
    made = Answer(result, source.point(env), int(np.shape(env.engine.G)[1]), rows)
    _keep(_RESULTS, key, made)
    return made


class _Runs:
    """Runs of a place, each without its `P0` twin, the last few remembered.

    A run under `P0` reads no psi, so it stays while w_G, w_H and psi_min are moved. What a constant
    action does there is the same with any constants, but for the scars, which no twin tells.
    """

    def __init__(self, source: Source, draws: Draws, check: Check, tell: Tell) -> None:
        self._source, self._draws, self._check, self._tell = source, draws, check, tell
        self._expected, self._done = 1, 0

    def expect(self, count: int) -> None:
        """So many runs are to come, for the share that is told."""
        self._expected = count

    def knows_twin(self, side: Side, found: Found) -> bool:
        """Whether `twin` needs no run."""
        return self._twin_key(side.nominal, found) in _TWINS

    def of(self, side: Side, found: Found, env: Any) -> RSDResult:
        """The diagnostic of a side, `env` being its environment."""
        read = side.without_psi if side.scope == "off" else side
        key = (self._source.serial, read, self._draws.which)
        if key not in _RAN:
            _keep(_RAN, key, self._run(found, env))
            self._done += 1
        if side.scope == "off":
            _keep(_TWINS, self._twin_key(side, found), _RAN[key])
        return _RAN[key]

    def twin(self, side: Side, found: Found) -> RSDResult:
        """The same policy under `P0`."""
        off = side.nominal
        if not self.knows_twin(side, found):
            self.of(off, found, self._source.make(off, found.observe))
        return _TWINS[self._twin_key(off, found)]

    def _twin_key(self, off: Side, found: Found) -> Any:
        """A policy that may see the fields belongs to their constants."""
        whose = off.without_psi if found.action is None else off.policy
        return (self._source.serial, whose, self._draws.which)

    def _run(self, found: Found, env: Any) -> RSDResult:
        if isinstance(self._source, GraphSource) and found.action is not None:
            return run_constant(env, found.action, self._draws, self._check)
        options = self._draws.options
        return blamed(
            "policy",
            lambda: evaluate(env, found.policy, selectivity=True, progress=self._step, **options),
        )

    def _step(self, done: int, steps: int) -> None:
        self._check()
        self._tell((self._done + done / steps) / self._expected)


def _keep(store: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    store[key] = value
    store.move_to_end(key)
    while len(store) > _KEPT:
        store.popitem(last=False)


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    low, high = found["ci95"]
    return {
        "mean": found["mean"], "low": low, "high": high, "pooled": "ratio" in found,
        "undefined": found["undefined"],
    }  # fmt: skip
