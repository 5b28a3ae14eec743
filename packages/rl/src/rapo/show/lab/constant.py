"""The diagnostic of a constant action on a graph, a phase per kernel call.

`rapo.rsd.evaluate` asks a policy at every step. A constant action needs no asking, so whole phases
run inside the engine: the same numbers, bit by bit, in a tenth of the time. Metrics of active sets
(R_c, the cascade of the first episode) are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.setting import REPLAY
from rapo.envs.stage import VectorStage
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.fit_search import WINDOW
from rapo.rsd.frame import joined
from rapo.rsd.result import TRACES, RSDResult
from rapo.show.lab.latest_job import OnProgress
from rapo.show.lab.request import Episodes
from rapo_core.checks import checked_stimuli

GAMMA = 0.99


def run_constant(
    env: GraphDiffusionVectorEnv, action: int, episodes: Episodes, on_progress: OnProgress
) -> RSDResult:
    """Run what `evaluate` runs with `selectivity`.

    Args:
        env: of any number of episodes; the diagnostic runs on copies.
        action: 0, 1 or 2.
        episodes: which episodes.
        on_progress: called before every phase with the steps done and their number; it may raise
            to end the run.
    """
    spans, E, stimuli = env.horizons, episodes.count, env.stimuli
    chosen = episodes.stimulus and checked_stimuli(episodes.stimulus, E, stimuli)
    stage: VectorStage = env.stage(
        E, seed=episodes.seed, stimuli=None if isinstance(chosen, int) else chosen, horizons=spans,
        coupled=episodes.coupled, deformed=(True, True, True),
    )  # fmt: skip
    parts, infos, state, other = [], [], None, None
    for phase, span in enumerate(spans):
        on_progress(sum(spans[:phase]), sum(spans))
        if phase == REPLAY:
            state = stage.save_state()
        traces, info = _run_phase(stage, phase, action, span)
        parts.append(traces)
        infos.append(info)
    stimulus, scars = np.array(stage.stimulus), stage.scars()
    if stimuli > 1 and np.isfinite(parts[REPLAY]["odds_ratio"]).any():
        on_progress(sum(spans), sum(spans))
        stage.restore_state(state)
        span = min(WINDOW, spans[REPLAY])
        other, _ = _run_phase(stage, REPLAY, action, span, stimulus % stimuli + 1)
    # Summed in the order of the steps, as `evaluate` does.
    nominal, deformed = (
        np.cumsum(infos[REPLAY][name], axis=0, dtype=np.float64)[-1]
        for name in ("entry_nominal", "entry_deformed")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        gating = np.where(nominal > 0, 1 - deformed / nominal, np.nan)
    part = {
        "traces": {name: np.concatenate([p[name] for p in parts], axis=1) for name in TRACES},
        "stimulus": stimulus, "ASD": np.zeros(E), "GatingRate": gating,
        "ever": None, "scars": scars, "laws": None, "cascade": None, "activity": None,
    }  # fmt: skip
    manifest = {"graph_hash": env.graph.hash, **episodes.options, "horizons": list(spans),
                "gamma": GAMMA}  # fmt: skip
    return joined([part], spans, episodes.seed, GAMMA, None, manifest, other=other)


def _run_phase(
    stage: VectorStage,
    phase: int,
    action: int,
    span: int,
    stimulus: npt.NDArray[np.int64] | None = None,
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Traces (E, span) of a phase by name, and its info, (span, E) each."""
    stage.begin(phase, stimulus)
    reward, info = stage.env.run(action, span)
    series = {**info, "reward": reward}
    missing = np.full(reward.shape, np.nan, np.float32)
    return {
        name: np.ascontiguousarray(series.get(name, missing).T, np.float32) for name in TRACES
    }, info
