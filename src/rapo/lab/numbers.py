"""The numbers and curves of a side: what `rapo.rsd.evaluate` finds, as the page shows it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rapo.lab.choice import Draws, Side, blamed
from rapo.lab.constant import Traces, nominal_replay, run_constant
from rapo.lab.policies import find_policy
from rapo.lab.sources import GraphSource, Source
from rapo.rsd.policy import Watcher, as_actor
from rapo.rsd.result import RSDResult
from rapo.rsd.runner import evaluate

ROWS = (
    "RAG", "AUC_R", "SM_R", "OddsRatio", "Selectivity", "SM_vs_P0", "ReplayReturn", "ReturnKept",
    "ScarMass",
)  # fmt: skip
"""Metrics that are shown, in this order."""
CURVES = ("reach", "sensitive_mass", "odds_ratio", "scar_mass")
_KEPT = 12

Check = Callable[[], None]


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
_NOMINAL: OrderedDict[Any, Traces] = OrderedDict()


def answer(source: Source, side: Side, draws: Draws, check: Check) -> Answer:
    """Run the diagnostic of a side, or tell what is known of it.

    Args:
        source: where.
        side: the setting.
        draws: which episodes.
        check: called now and then; it may raise to end the run.
    """
    episodes = (draws.episodes, draws.seed, draws.stimulus, draws.coupled)
    key = (source.serial, side, episodes)
    if key in _RESULTS:
        _RESULTS.move_to_end(key)
        return _RESULTS[key]
    found = find_policy(source, side)
    env: Any = source.make(side, found.observe)
    if isinstance(source, GraphSource) and found.action is not None:
        twin = _nominal((source.serial, found.action, episodes), env, found.action, draws, check)
        result = run_constant(env, found.action, draws, check, twin)
    else:
        actor: Any = Stoppable(as_actor(found.policy, env.single_action_space), check)
        actor = _Watching(actor) if isinstance(actor.actor, Watcher) else actor
        result = blamed(
            "policy",
            lambda: evaluate(env, actor, against_P0=True, selectivity=True, **draws.options),
        )
    numbers = numbers_of(result)
    rows = [{"name": name, **_plain(numbers[name])} for name in ROWS]
    made = Answer(result, source.point(env), int(np.shape(env.engine.G)[1]), rows)
    _keep(_RESULTS, key, made)
    return made


def _nominal(key: Any, env: Any, action: int, draws: Draws, check: Check) -> Traces:
    """The `P0` twin's Replay: a slider that moves a constant does not move it."""
    if key not in _NOMINAL:
        _keep(_NOMINAL, key, nominal_replay(env, action, draws, check))
    return _NOMINAL[key]


def _keep(store: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    store[key] = value
    while len(store) > _KEPT:
        store.popitem(last=False)


class Stoppable:
    """An actor that can be ended from outside.

    Args:
        actor: who acts.
        check: raises when it is to end.
    """

    def __init__(self, actor: Any, check: Check) -> None:
        self.actor, self._check = actor, check

    def reset(self, episodes: int, seed: int) -> None:
        """Of the actor."""
        self.actor.reset(episodes, seed)

    def act(self, x: Any, draws: Any) -> Any:
        """Of the actor, unless it is to end."""
        self._check()
        return self.actor.act(x, draws)


class _Watching(Stoppable):
    """The same of a shield."""

    def __init__(self, inner: Stoppable) -> None:
        super().__init__(inner.actor, inner._check)

    def watch(self, env: Any) -> None:
        """Of the actor."""
        self.actor.watch(env)


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    low, high = found["ci95"]
    return {
        "mean": found["mean"], "low": low, "high": high, "pooled": "ratio" in found,
        "undefined": found["undefined"],
    }  # fmt: skip
