"""What a study gives: tables, figures and claims, as one section of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from rapo.html import page
from rapo.paper.piece_reader import Piece, read_piece
from rapo.paper.presets import Preset
from rapo.paper.studies.verdicts import Claim
from rapo.paper.tasks import Evaluate


@dataclass(frozen=True)
class Section(page.Section):
    """A study's part of the report; `name` is that of the study and of its files."""

    claims: Sequence[Claim] = ()
    files: dict[str, pd.DataFrame] = field(default_factory=dict)
    """CSV files to write, by name."""


class Store:
    """Pieces of a results folder, read once each.

    Args:
        root: the folder.
        preset: what was run.
    """

    def __init__(self, root: Path, preset: Preset) -> None:
        self.root, self.preset = root, preset
        self._read: dict[str, Piece] = {}

    def piece(self, task: Evaluate) -> Piece:
        """One evaluation."""
        if task.key not in self._read:
            self._read[task.key] = read_piece(task, self.root)
        return self._read[task.key]

    def pieces(self, tasks: Sequence[Evaluate]) -> list[Piece]:
        """Several evaluations."""
        return [self.piece(task) for task in tasks]

    def frame(self, tasks: Sequence[Evaluate]) -> pd.DataFrame:
        """Episodes of several evaluations below each other."""
        return pd.concat([self.piece(task).frame for task in tasks], ignore_index=True)

    def base_return(self) -> float:
        """GE's mean Replay return pooled over the main graphs: the unit of ReplayRet."""
        preset = self.preset
        tasks = [preset.evaluation("GE", seed) for seed in preset.graph_seeds]
        return float(self.frame(tasks)["ReplayReturn"].mean())

    def seconds(self) -> float:
        """Time by the clock of all evaluations read and of the training behind them, added up."""
        spent = {}
        for piece in self._read.values():
            training = piece.content.get("training") or {}
            spent[piece.task.policy.key] = float(training.get("seconds") or 0)
            spent[piece.task.key] = float(piece.content["seconds"])
        return sum(spent.values())
