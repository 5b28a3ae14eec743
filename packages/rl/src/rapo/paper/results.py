"""Results of a folder as data frames: the frames of its jobs, below each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from rapo.jobs.tables import read_table
from rapo.paper.jobs import Evaluation
from rapo.paper.presets import Preset
from rapo_core.checks import UserError


class Results:
    """The frames of a folder of results; each file is read once.

    Every frame has the columns `method` (the evaluation's name), `nodes` and `graph_seed`.

    Args:
        root: the folder.
        preset: what was run.
    """

    def __init__(self, root: Path, preset: Preset) -> None:
        self.root, self.preset = root, preset
        self._files: dict[Path, pd.DataFrame] = {}

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
        folders = {path.parent for path in self._files}
        total = 0.0
        for folder in folders:
            total += float(self._read(folder / "evaluations.parquet")["seconds"].sum())
            if (folder / "training.parquet").exists():
                total += float(self._read(folder / "training.parquet")["seconds"].iloc[0])
        return total

    def _concat(self, name: str, evaluations: Sequence[Evaluation]) -> pd.DataFrame:
        parts = [part for part in self._parts(name, evaluations) if len(part)]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def _parts(self, name: str, evaluations: Sequence[Evaluation]) -> Iterator[pd.DataFrame]:
        for evaluation in evaluations:
            path = self.root / "jobs" / evaluation.policy.key / f"{name}.parquet"
            of_policy = name in ("training", "tuning")
            if of_policy and not path.exists():
                continue  # an untrained policy, or one that is not tuned
            frame = self._read(path)
            if not of_policy:
                frame = frame[frame["evaluation"] == evaluation.key].drop(columns="evaluation")
                if frame.empty or (name == "episodes" and len(frame) != evaluation.episodes):
                    raise self._missing(f"{evaluation.key} in {path}")
            config = evaluation.policy.config
            place = {
                "method": evaluation.name, "nodes": config.nodes, "graph_seed": config.graph_seed,
            }  # fmt: skip
            front = pd.DataFrame(place, index=frame.index)
            yield pd.concat([front, frame], axis=1)

    def _read(self, path: Path) -> pd.DataFrame:
        if path not in self._files:
            if not path.exists():
                raise self._missing(str(path))
            self._files[path] = read_table(path)
        return self._files[path]

    def _missing(self, what: str) -> UserError:
        command = f"rapo reproduce all --preset {self.preset.name} --out {self.root}"
        return UserError(f"{what} is missing; {command} makes it")
