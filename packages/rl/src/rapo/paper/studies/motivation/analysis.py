"""The table of controllers under both kernels, and the claims of the example."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rapo.agents.run_config import open_graph
from rapo.cascade.setting import AGGRESSIVE, DECAY, EXPOSURE, REPLAY
from rapo.paper.results import Results
from rapo.paper.studies.motivation.figures import course_figure, curves
from rapo.paper.studies.motivation.runs import (
    CARRIED,
    EPISODES,
    FREE,
    RESET,
    Runs,
    throttled_runs,
)
from rapo.paper.studies.section import Section
from rapo.paper.studies.verdicts import CALIBRATED, CONSTRUCTED, Claim, full_replay, judge, side
from rapo.platforms.cascade.baseline import Throttle


def analyse(results: Results) -> Section:
    """Show replay in one picture, with its numbers and two claims."""
    preset = results.preset
    config = preset.config("GE", preset.graph_seeds[0])
    controller = Throttle()
    graph = open_graph(config.env_kwargs)
    options = {"episodes": EPISODES, "setting": config.setting, "params": config.params}
    runs = throttled_runs(graph, controller, **options)
    summary = table(runs, controller)
    forgot = float(summary.set_index("run")["forgotten"][f"P0, {CARRIED}"])
    text = [
        f"A scripted controller on one graph of {preset.nodes} nodes, {EPISODES} episodes: the "
        f"penalty p grows with arriving harm, shrinks by beta = {controller.beta} a step, and "
        f"injection is moderate above p = {controller.levels[0]:g}, conservative above "
        f"{controller.levels[1]:g}. The paper gives no beta.",
        "RSD resets an agent's memory at Replay. That is not what brings the cascade back: with "
        f"the penalty carried on, {forgot:.0%} of the episodes enter Replay below the first level "
        "all the same."
        + (
            " In the others the cascade outlived half of the washout, so harm kept arriving."
            if forgot < 1
            else ""
        ),
        "For a fair picture the table has the same runs without the penalty: throttling lowers "
        "reach in Exposure and Replay alike, so their ratio says nothing of it.",
    ]
    return Section(
        name="motivation",
        title="What replay is: a transient penalty forgets",
        text=text,
        tables=[("Mean over episodes", _printed(summary))],
        figures=[
            (
                "motivation",
                "Median over episodes, quartiles shaded. Once harm arrives the penalty throttles "
                "the cascade; after the washout it is gone, and under P0 the same cascade returns. "
                "The same controller in front of the deformed kernel does not see it again",
                course_figure(runs, controller),
            ),
        ],
        claims=_claims(summary),
        files={"motivation": summary, "motivation_curves": curves(runs)},
    )


def table(runs: Runs, controller: Throttle) -> pd.DataFrame:
    """Tabulate the runs: peak and mean reach by phase, their ratios, the throttle and the reward.

    `throttled` is the share of Exposure's steps below the aggressive action, `late_exposure` the
    mean reach in Exposure's second half, and `forgotten` the share of episodes that end the washout
    with a penalty below the first level.
    """
    rows = []
    for name, run in runs.items():
        before, after = (run.of_phase(run.reach, phase) for phase in (EXPOSURE, REPLAY))
        last = run.of_phase(run.penalty, DECAY)[:, -1]
        peaks = [values.max(axis=1).mean() for values in (before, after)]
        rows.append(
            {
                "run": name,
                "peak_exposure": peaks[0],
                "peak_replay": peaks[1],
                "peak_ratio": peaks[1] / peaks[0] if peaks[0] > 0 else np.nan,
                "reach_exposure": before.mean(),
                "reach_replay": after.mean(),
                "late_exposure": before[:, before.shape[1] // 2 :].mean(),
                "throttled": (run.of_phase(run.action, EXPOSURE) > AGGRESSIVE).mean(),
                "throttled_replay": (run.of_phase(run.action, REPLAY) > AGGRESSIVE).mean(),
                "penalty_peak": run.of_phase(run.penalty, EXPOSURE).max(axis=1).mean(),
                "penalty_left": float(np.median(last)),
                "forgotten": (last <= controller.levels[0]).mean(),
                "reward_replay": run.of_phase(run.reward, REPLAY).mean(),
            }
        )
    return pd.DataFrame(rows)


def _printed(summary: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {
            "kernel, controller": row["run"],
            "peak reach, Exposure → Replay": (
                f"{row['peak_exposure']:.1f} → {row['peak_replay']:.1f}"
            ),
            "ratio": f"{row['peak_ratio']:.2f}",
            "mean reach": f"{row['reach_exposure']:.1f} → {row['reach_replay']:.1f}",
            "steps throttled": f"{row['throttled']:.0%} → {row['throttled_replay']:.0%}",
            "peak p in Exposure": f"{row['penalty_peak']:.1f}",
            "median p after the washout": f"{row['penalty_left']:.2f}",
            "reward a step in Replay": f"{row['reward_replay']:.2f}",
        }
        for row in summary.to_dict("records")
    ]
    return pd.DataFrame(rows)


def _claims(summary: pd.DataFrame) -> list[Claim]:
    rows = {row["run"]: row for row in summary.to_dict("records")}
    free, reset, carried = (rows[f"P0, {name}"] for name in (FREE, RESET, CARRIED))
    deformed = rows[f"deformed, {CARRIED}"]
    throttled = reset["late_exposure"] / free["late_exposure"]
    back = full_replay([reset["peak_ratio"], carried["peak_ratio"]])
    return [
        judge(
            "Section 1",
            "Once a transient penalty has decayed, the same stimulus brings the same cascade",
            "replay under a stationary kernel",
            f"peak {reset['peak_ratio']:.2f} of Exposure's, {carried['peak_ratio']:.2f} with the "
            "penalty carried on",
            throttled < 0.9 and back,
            CONSTRUCTED,
            f"throttled in Exposure to {throttled:.0%} of the reach; {carried['forgotten']:.0%} of "
            "episodes forgot in the washout"
            if throttled < 0.9
            else "the penalty does not throttle",
        ),
        judge(
            "Section 1",
            "The same controller in front of a kernel with memory does not see it again",
            "suppressed",
            f"peak {deformed['peak_ratio']:.2f} of Exposure's",
            side(deformed["peak_ratio"]) == "suppressed",
            CALIBRATED,
            "scars outlast the penalty; the controller is aggressive for "
            f"{1 - deformed['throttled_replay']:.0%} of Replay",
        ),
    ]
