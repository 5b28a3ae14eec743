"""Results of a folder as data frames: the frames of its jobs, below each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from rapo.jobs.tables import job_table
from rapo.paper.jobs import Evaluation
from rapo.paper.presets import Preset
from rapo_core.checks import UserError


class Results:
    """The frames of a folder of results, each read once: from folders of jobs, or an archive.

    Every frame has the columns `method` (the evaluation's name), `nodes` and `graph_seed`.

    Args:
        root: the folder.
        preset: what was run.
    """

    def __init__(self, root: Path, preset: Preset) -> None:
        self.root, self.preset = root, preset
        self._frames: dict[tuple[str, str], pd.DataFrame | None] = {}

    def episodes(self, evaluations: Sequence[Evaluation]) -> pd.DataFrame:
        """A row per episode of several evaluations."""
        return self._concat("episodes", evaluations)

    def curves(self, evaluations: Sequence[Evaluation]) -> pd.DataFrame:
        """A row per bin of steps: mean and std over episodes of every trace."""
        return self._concat("curves", evaluations)

    def about(self, evaluations: Sequence[Evaluation]) -> pd.DataFrame:
        """A row per evaluation: its seconds, and threshold and compute of its shield."""
        return self._concat("evaluations", evaluations)

    def budgets(self, evaluations: Sequence[Evaluation]) -> pd.DataFrame:
        """A row per cost of the trainings behind the evaluations; empty if nothing was paid."""
        frame = self._concat("training", evaluations)
        if frame.empty:
            return frame
        paid = frame[frame["cost"] != ""].drop(columns=["nodes", "seconds"])
        return paid.reset_index(drop=True)

    def tuning(self, evaluations: Sequence[Evaluation]) -> pd.DataFrame:
        """A row per trial of a shield's threshold; empty if nothing was tuned."""
        return self._concat("tuning", evaluations)

    def base_return(self) -> float:
        """GE's mean Replay return pooled over the main graphs: the unit of ReplayRet."""
        preset = self.preset
        wanted = [preset.evaluation("GE", seed) for seed in preset.graph_seeds]
        return float(self.episodes(wanted)["ReplayReturn"].mean())

    def seconds(self) -> float:
        """Time by the clock of all evaluations read and of the training behind them, added up."""
        total = 0.0
        for key in {key for key, _ in self._frames}:
            about, training = (self._frame(key, name) for name in ("evaluations", "training"))
            total += 0.0 if about is None else float(about["seconds"].sum())
            total += 0.0 if training is None else float(training["seconds"].iloc[0])
        return total

    def _concat(self, name: str, evaluations: Sequence[Evaluation]) -> pd.DataFrame:
        parts = [part for part in self._parts(name, evaluations) if len(part)]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def _parts(self, name: str, evaluations: Sequence[Evaluation]) -> Iterator[pd.DataFrame]:
        for evaluation in evaluations:
            frame = self._frame(evaluation.policy.key, name)
            if name in ("training", "tuning"):
                if frame is None:
                    continue  # an untrained policy, or one that is not tuned
            else:
                if frame is not None:
                    frame = frame[frame["evaluation"] == evaluation.key].drop(columns="evaluation")
                whole = evaluation.episodes if name == "episodes" else 1
                if frame is None or len(frame) < whole:
                    raise self._missing(evaluation)
            config = evaluation.policy.config
            place = {
                "method": evaluation.name, "nodes": config.nodes, "graph_seed": config.graph_seed,
            }  # fmt: skip
            front = pd.DataFrame(place, index=frame.index)
            yield pd.concat([front, frame], axis=1)

    def _frame(self, key: str, name: str) -> pd.DataFrame | None:
        if (key, name) not in self._frames:
            self._frames[key, name] = job_table(self.root, key, name)
        return self._frames[key, name]

    def _missing(self, evaluation: Evaluation) -> UserError:
        folder = self.root / "jobs" / evaluation.policy.key
        command = f"rapo reproduce all --preset {self.preset.name} --out {self.root}"
        return UserError(f"{evaluation.key} is missing in {folder}; {command} makes it")
