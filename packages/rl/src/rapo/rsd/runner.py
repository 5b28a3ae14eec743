"""`evaluate`: exposure, decay and replay with a frozen policy, on our environments or anyone's."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.setting import REPLAY
from rapo.graphs.fit_search import WINDOW
from rapo.rsd.adapters import EnvAdapter, Stage
from rapo.rsd.episodes import Tick, run_phases, run_replay
from rapo.rsd.frame import joined
from rapo.rsd.policy import Watcher, as_actor
from rapo.rsd.result import TRACES, RSDResult
from rapo_core.checks import UserError, checked_stimuli, truth, whole_number
from rapo_core.version import VERSION

Array = npt.NDArray[Any]


def evaluate(
    env: Any,
    policy: Any,
    episodes: int = 20,
    seed: int = 0,
    coupled: bool = False,
    *,
    horizons: tuple[int, int, int] | None = None,
    stimuli: int | Sequence[int] | None = None,
    off_at_replay: bool = False,
    against_P0: bool = False,
    selectivity: bool = False,
    deterministic: bool = False,
    batched: bool | None = None,
    gamma: float = 0.99,
    progress: bool | Callable[[int, int], object] = False,
) -> RSDResult:
    """Run the Replay Suppression Diagnostic.

    Args:
        env: `rapo/GraphDiffusion-v0` or a platform (single or vector: all episodes run at once),
            any environment that makes its own stage (`Staged`), or one that offers `ReplayEnv`. Our
            environments run on copies. A subclass of a single environment that overrides a method
            which RSD calls runs one episode at a time, through the protocol.
        policy: a callable on observations, a torch module, a Stable-Baselines3 model or an agent,
            see `as_actor`. Its memory is reset when Exposure and Replay begin. A `Watcher`, such as
            `Shield`, needs one of our environments on a graph, and has no ASD if it sees the
            fields. A policy with a `constant_action` is not asked at every step.
        episodes: RSD episodes, >= 1; episode i has seed `seed + i`.
        seed: >= 0.
        coupled: whether Replay reuses Exposure's draws, of the environment and of the actions.
        horizons: steps of exposure, decay and replay; default the environment's, else 500/200/500.
        stimuli: 1-based, one or one per episode; default drawn.
        off_at_replay: sample Replay from `P0`, policy and fields untouched (off@rep).
        against_P0: also run the same policy, seeds and draws under `P0`: SM_vs_P0, Reach_vs_P0 and
            ReturnKept are Replay over that run's, 1 for a run that is itself `P0`. With
            `ReplayEnv` alone it needs `set_deformation`, and leaves the environment deformed.
        selectivity: begin Replay again with the same memory and draws under the next stimulus
            (z mod Z + 1): Selectivity = OddsOther - OddsSame over its first 50 steps, NaN with one
            stimulus or without odds. Without `snapshot` the earlier phases run once more.
        deterministic: take the most probable actions.
        batched: whether a callable takes all observations at once; default what it declares.
        gamma: discount of the returns, in (0, 1].
        progress: True shows a progress bar. A function is called after every step with the number
            of steps done and the largest number there can be; an exception in it ends the run.
    """
    episodes, seed = whole_number("episodes", episodes, 1), whole_number("seed", seed, 0)
    asked = {
        "coupled": truth("coupled", coupled),
        "off_at_replay": truth("off_at_replay", off_at_replay),
        "against_P0": truth("against_P0", against_P0),
        "selectivity": truth("selectivity", selectivity),
        "deterministic": truth("deterministic", deterministic),
    }
    if not 0 < gamma <= 1:
        raise UserError(f"gamma must be in (0, 1], got {gamma!r}")
    adapter = EnvAdapter.of(env)
    adapter.need_switch([name for name in ("off_at_replay", "against_P0") if asked[name]])
    spans = checked_horizons(adapter.horizons if horizons is None else horizons)
    known, space = int(adapter.base.stimuli), adapter.action_space
    chosen = None if stimuli is None else checked_stimuli(stimuli, episodes, known)
    actor = as_actor(policy, space, deterministic=deterministic, batched=batched)
    runs: dict[str, Any] = {"coupled": coupled, "off_at_replay": off_at_replay}
    reference, other, probe = None, None, (*spans[:2], min(WINDOW, spans[REPLAY]))
    stages = adapter.stages(episodes, seed, chosen, spans, **runs)
    let_watch(actor, stages, adapter, policy)
    with _bar(progress, _steps(spans, probe, adapter, asked) * len(stages)) as tick:
        parts = [run_phases(stage, actor, spans, space, tick, keep=selectivity) for stage in stages]
        # A copy of a watcher takes over: its counts of compute stay those of the diagnostic.
        actor = copy(actor) if isinstance(actor, Watcher) else actor
        if selectivity and known > 1 and _has_odds(parts, spans):
            other = _under_others(stages, parts, actor, probe, space, tick, known)
        if against_P0:
            nominal = adapter.stages(episodes, seed, chosen, spans, **runs, P0=True)
            let_watch(actor, nominal, adapter, policy)
            reference = _together([run_replay(s, actor, spans, space, tick) for s in nominal])
    graph = stages[0].graph
    run = {"episodes": episodes, "seed": seed, "horizons": list(spans), **asked, "gamma": gamma}
    run |= _made_of(adapter, policy, graph)
    return joined(parts, spans, seed, gamma, graph, run, reference=reference, other=other)


def _made_of(adapter: EnvAdapter, policy: Any, graph: Any) -> dict[str, Any]:
    """Environment, policy, graph and versions, for the manifest."""
    packages = {name: version(name) for name in ("numpy", "numba", "gymnasium", "pandas")}
    return {
        "environment": type(adapter.base).__name__,
        "policy": type(policy).__name__,
        "graph_hash": None,
        **adapter.describe(graph),
        "versions": {"python": platform.python_version(), "rapo": VERSION, **packages},
    }


def _under_others(
    stages: Sequence[Stage],
    parts: Sequence[dict[str, Any]],
    actor: Any,
    spans: tuple[int, int, int],
    space: Any,
    tick: Any,
    known: int,
) -> Any:
    """Replay once more with the memory of Exposure, each episode under the next stimulus."""
    return _together([
        run_replay(stage, actor, spans, space, tick, state=part.pop("state"),
                   stimulus=part["stimulus"] % known + 1)
        for stage, part in zip(stages, parts, strict=True)
    ])  # fmt: skip


def let_watch(actor: Any, stages: Sequence[Stage], adapter: EnvAdapter, policy: Any) -> None:
    """Show a `Watcher` the environment whose episodes it acts in."""
    if not isinstance(actor, Watcher):
        return
    if len(stages) != 1 or stages[0].watched is None:
        raise UserError(
            f"{type(policy).__name__} watches the state of rapo/GraphDiffusion-v0, got "
            f"{type(adapter.base).__name__}; give a policy that acts on observations alone"
        )
    actor.watch(stages[0].watched)


def _has_odds(parts: Sequence[Mapping[str, Any]], spans: tuple[int, int, int]) -> bool:
    return any(np.isfinite(p["traces"]["odds_ratio"][:, -spans[REPLAY] :]).any() for p in parts)


def _together(runs: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    return {name: np.concatenate([run[name] for run in runs]) for name in TRACES}


def _steps(
    spans: tuple[int, int, int],
    probe: tuple[int, int, int],
    adapter: EnvAdapter,
    asked: Mapping[str, bool],
) -> int:
    """Steps of one stage, for the progress bar."""
    whole = sum(spans) * (2 if asked["against_P0"] else 1)
    if asked["selectivity"]:
        whole += probe[REPLAY] if adapter.restores else sum(probe)
    return whole


def checked_horizons(horizons: Any) -> tuple[int, int, int]:
    """Three whole numbers of steps, each at least 1."""
    try:
        exposure, decay, replay = (whole_number("a horizon", h, 1) for h in horizons)
    except (TypeError, ValueError):
        raise UserError(
            f"horizons must be three whole numbers of steps >= 1, got {horizons!r}"
        ) from None
    return exposure, decay, replay


class _bar(AbstractContextManager[Tick]):  # noqa: N801 - used like a function
    """A progress bar over a number of steps, somebody who is told of them, or nothing."""

    def __init__(self, shown: bool | Callable[[int, int], object], total: int) -> None:
        self.shown, self.total, self.done = shown, total, 0

    def __enter__(self) -> Tick:
        if callable(self.shown):
            return self._count
        if not self.shown:
            return lambda n: None
        from rich.progress import Progress

        self.progress = Progress(transient=True)
        self.progress.start()
        task = self.progress.add_task("exposure, washout, replay", total=self.total)
        return lambda n: self.progress.advance(task, n)

    def __exit__(self, *error: object) -> None:
        if self.shown and not callable(self.shown):
            self.progress.stop()

    def _count(self, steps: int) -> None:
        assert callable(self.shown)
        self.done += steps
        self.shown(self.done, self.total)
