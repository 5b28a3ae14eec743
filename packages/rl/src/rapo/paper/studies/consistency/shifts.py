"""Settings that meet RAG and off@rep both: is it the kernel, or a policy that acts otherwise?

The screening's greedy policy looks at the conductance, so it may play less in Replay than it did in
Exposure. The same settings with actions that never change tell the two apart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.cascade import stats as row
from rapo.cascade.draws import derive
from rapo.cascade.engine import Cascade
from rapo.cascade.greedy_policy import greedy
from rapo.cascade.setting import AGGRESSIVE, CONSERVATIVE, EXPOSURE, REPLAY, Setting
from rapo.graphs.generate import generate
from rapo.jobs.job import Job, digest
from rapo.jobs.tables import read_table, write_table
from rapo.paper.screening import EVERY
from rapo.paper.studies.consistency.frontier import met
from rapo.paper.studies.consistency.numbers import OFF, ROW
from rapo.rsd.metrics import auc_ratio, rag

POLICIES = {"greedy": None, "aggressive": AGGRESSIVE, "conservative": CONSERVATIVE}
"""The policy that looks at the conductance, and actions that never change."""
MOST = 5
"""Settings that are looked at again, the best first."""
GRAPHS = (1000, 1001, 1002, 1003)


@dataclass(frozen=True)
class Shift:
    """One setting under all policies."""

    name: str
    """Log and key of the setting."""
    setting: Setting
    graphs: tuple[int, ...] = GRAPHS
    episodes: int = 40
    nodes: int = 250

    @property
    def key(self) -> str:
        """Name of the job: all that its table depends on."""
        return f"shift-{digest([self.setting.to_dict(), self.graphs, self.episodes, self.nodes])}"

    @property
    def needs(self) -> tuple[Job, ...]:
        """Nothing: a setting stands alone."""
        return ()

    @property
    def seconds(self) -> float:
        """Roughly how long one thread will take."""
        return 2.0 * len(POLICIES) * len(self.graphs)

    def table(self, root: Path) -> Path:
        """Where the table is, a row per policy."""
        return root / "jobs" / self.key / "shifts.parquet"

    def done(self, root: Path) -> bool:
        """Whether the table is there."""
        return self.table(root).exists()

    def run(self, root: Path) -> None:
        """Run every policy on every graph and write the table."""
        rows = []
        for name, action in POLICIES.items():
            found = [self._one(graph, action) for graph in self.graphs]
            means = {metric: float(np.mean([f[metric] for f in found])) for metric in found[0]}
            rows.append({"policy": name, **means})
        write_table(self.table(root), pd.DataFrame(rows))

    def _one(self, graph_seed: int, action: int | None) -> dict[str, float]:
        graph = generate(self.nodes, graph_seed, self.setting)
        engine = Cascade(graph, self.episodes, setting=self.setting, params=self.setting.params)
        episodes = np.arange(self.episodes)
        engine.start(derive(derive(episodes, 0), 0), 1 + episodes % graph.stimuli)
        before, first = _phase(engine, action, EXPOSURE)
        _phase(engine, action, 1)
        kept = engine.snapshot()
        gated, _ = _phase(engine, action, REPLAY)
        engine.restore(kept)
        engine.set_deformation(False)
        free, second = _phase(engine, action, REPLAY)
        return {
            "RAG": float(rag(before, gated).mean()),
            "off_RAG": float(rag(before, free).mean()),
            "off_AUC_R": float(auc_ratio(before, free).mean()),
            "aggressive_exposure": first,
            "aggressive_off@rep": second,
        }


def _phase(
    engine: Cascade, action: int | None, phase: int
) -> tuple[npt.NDArray[np.float64], float]:
    """Reach over one phase, (episodes, T), and the share of aggressive actions."""
    parts, shares, left = [], [], engine.setting.horizons[phase]
    while left:
        steps = min(EVERY, left)
        chosen = greedy(engine) if action is None else np.full(engine.episodes, action)
        shares.append(float(np.mean(chosen == AGGRESSIVE)))
        parts.append(engine.run(chosen, steps)[:, row.REACH])
        left -= steps
    return np.concatenate(parts).astype(np.float64).T, float(np.mean(shares))


def plan(screened: pd.DataFrame, **size: Any) -> list[Shift]:
    """The settings, best first, that meet RAPO's RAG and off@rep's AUC-R both."""
    both = screened[met(screened, (ROW[0], OFF[1])).all(axis=1)] if len(screened) else screened
    best = both.sort_values("score", kind="stable").head(MOST)
    return [
        Shift(f"{at['log']} {at['key']}", Setting.from_dict(json.loads(str(at["setting"]))), **size)
        for at in best.to_dict("records")
    ]


def read(jobs: Sequence[Shift], root: Path) -> pd.DataFrame:
    """A row per setting and policy."""
    parts = [read_table(job.table(root)).assign(setting=job.name) for job in jobs]
    if not parts:
        return pd.DataFrame()
    frame = pd.concat(parts, ignore_index=True)
    return frame[["setting", *frame.columns.drop("setting")]]
