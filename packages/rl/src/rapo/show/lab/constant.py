"""The diagnostic of a constant action on a graph, a phase per kernel call.

`rapo.rsd.evaluate` asks a policy at every step. A constant action needs no asking, so whole phases
run inside the engine: the same numbers, bit by bit, in a tenth of the time. What is read off active
sets (R_c, the cascade of the first episode) is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY
from rapo.envs.stage import VectorStage
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.fit_search import WINDOW
from rapo.rsd.frame import joined
from rapo.rsd.result import TRACES, RSDResult
from rapo.show.lab.request import Draws
from rapo_core.checks import checked_stimuli

Traces = dict[str, npt.NDArray[Any]]
Check = Callable[[], None]
GAMMA = 0.99


def run_constant(
    env: GraphDiffusionVectorEnv, action: int, draws: Draws, check: Check
) -> RSDResult:
    """What `evaluate` finds with `selectivity`.

    Args:
        env: of any number of episodes; those of the diagnostic run on copies.
        action: 0, 1 or 2.
        draws: which episodes.
        check: called between phases; it may raise to end the run.
    """
    spans = env.horizons
    stage = _stage(env, draws)
    parts = []
    entries = np.zeros((2, draws.episodes))
    state: Any = None
    for phase, span in enumerate(spans):
        check()
        if phase == REPLAY:
            state = stage.save_state()
        traces, info = _phase(stage, phase, action, span)
        parts.append(traces)
        if phase == REPLAY:  # summed in the order of the steps, as `evaluate` does
            both = (info["entry_nominal"], info["entry_deformed"])
            entries = np.stack([np.cumsum(each, axis=0, dtype=np.float64)[-1] for each in both])
    stimulus = np.array(stage.stimulus)
    scars = stage.scars()
    known = env.stimuli
    other = None
    if known > 1 and np.isfinite(parts[REPLAY]["odds_ratio"]).any():
        check()
        stage.restore_state(state)
        other, _ = _phase(stage, REPLAY, action, min(WINDOW, spans[REPLAY]), stimulus % known + 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        gating = np.where(entries[0] > 0, 1 - entries[1] / entries[0], np.nan)
    part = {
        "traces": {name: np.concatenate([p[name] for p in parts], axis=1) for name in TRACES},
        "stimulus": stimulus, "ASD": np.zeros(draws.episodes), "GatingRate": gating,
        "ever": None, "scars": scars, "laws": None, "cascade": None, "activity": None,
    }  # fmt: skip
    run = {"graph_hash": env.graph.hash, **draws.options, "horizons": list(spans)}
    manifest = {**run, "gamma": GAMMA}
    return joined([part], spans, draws.seed, GAMMA, None, manifest, other=other)


def _stage(env: GraphDiffusionVectorEnv, draws: Draws) -> VectorStage:
    stimulus = draws.stimulus or None
    stage: VectorStage = env.stage(
        draws.episodes,
        seed=draws.seed,
        stimuli=stimulus and checked_stimuli(stimulus, draws.episodes, env.stimuli),
        horizons=env.horizons,
        coupled=draws.coupled,
        deformed=(True, True, True),
    )
    return stage


def _phase(
    stage: VectorStage,
    phase: int,
    action: int,
    span: int,
    stimulus: npt.NDArray[np.int64] | None = None,
) -> tuple[Traces, dict[str, Any]]:
    """Traces (E, span) of a phase, and its info, (span, E) each."""
    assert phase in (EXPOSURE, DECAY, REPLAY)
    stage.begin(phase, stimulus)
    reward, info = stage.env.run(action, span)
    found = {**info, "reward": reward}
    missing = np.full(reward.shape, np.nan, np.float32)
    return {n: _by_episode(found.get(n, missing)) for n in TRACES}, info


def _by_episode(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    return np.ascontiguousarray(values.T, np.float32)
