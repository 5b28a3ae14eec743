"""Does a gate stop a rumour from coming back? RSD on a simulated feed with a real gate before it.

A feed shows every user one item per step. It pushes what others have just looked at, so a rumour
grows; when the gate enforces, the scar that the rumour has left keeps it small the second time.

    python examples/gated_platform.py
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import rapo
from rapo_gate import Gate, GateConfig, HarmReport

USERS = 20
OTHERS = ["news", "sports", "cats", "music"]
CONFIG = GateConfig(tick_seconds=1.0, D=8)


class GatedFeed(gymnasium.Env[Any, Any]):
    """A feed whose every choice goes through `Gate.decide`: one step is one tick of its clock.

    Actions: 0 shows what others looked at a little more, 1 much more. A stimulus is a rumour.
    """

    stimuli = 2
    memory_mask = None  # no part of an observation shows the gate's memory
    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float32)

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.folder: tempfile.TemporaryDirectory[str] | None = None
        self.gate: Gate | None = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A new gate: nothing is remembered."""
        super().reset(seed=seed)
        self.close()
        self.now, self.folder = 1e9, tempfile.TemporaryDirectory()
        self.gate = Gate.open(Path(self.folder.name) / "gate.db", CONFIG, clock=lambda: self.now)
        self.gate.set_mode(self.mode)
        self.activate(1)
        return self.reset_observable(seed), {}

    def activate(self, stimulus: int) -> None:
        """Start a rumour."""
        self.rumour: str | None = f"rumour {stimulus}"

    def deactivate(self) -> None:
        """End it; the users wait."""
        self.rumour = None

    def reset_observable(self, seed: int | None = None) -> Any:
        """Nobody has seen anything; what the gate remembers stays."""
        self.draws, self.share = np.random.default_rng(seed), 0.0
        return self._observation()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Every user gets an item; those who got the rumour report it, and so does a classifier."""
        assert self.gate is not None
        self.now += CONFIG.tick_seconds
        self.gate.tick()
        info: dict[str, Any] = {"reach": 0, "sensitive_mass": 0}
        self.share, proposed = 0.0, 0.1 + (0.4 + 0.4 * int(action)) * self.share
        if self.rumour is not None:
            items = [self.rumour, *OTHERS]
            p = np.array([proposed, *[(1 - proposed) / len(OTHERS)] * len(OTHERS)])
            reports: list[HarmReport] = []
            for user in range(USERS):
                decision = self.gate.decide(items, p)
                item = str(self.draws.choice(items, p=decision.q))
                self.gate.expose_logged(decision.decision_id, [item])
                if item == self.rumour:
                    reports += self._reports(user, decision.decision_id)
            self.gate.report(reports)
            seen = len(reports) // 2
            self.share = seen / USERS
            info = {"reach": seen, "sensitive_mass": seen, "odds_ratio": float(decision.psi[0])}
        info["scar_mass"] = sum(field.H for field in self.gate.fields().values())
        return self._observation(), 0.5 + 0.5 * self.share, False, False, info

    def _reports(self, user: int, decision_id: str) -> list[HarmReport]:
        """Two signals from two sources; three sources that agree make a scar possible."""
        by_user = HarmReport(
            f"user {user}", decision_id, 1.0, "user-report", self.now, decision_id=decision_id
        )
        by_machine = HarmReport(
            "classifier", decision_id, 0.5, "classifier", self.now, decision_id=decision_id
        )
        return [by_user, by_machine]

    def _observation(self) -> Any:
        return np.array([self.share], np.float32)

    def close(self) -> None:
        """Let go of the gate and of its file."""
        if self.gate is not None:
            self.gate.close()
        if self.folder is not None:
            self.folder.cleanup()


def diagnose(mode: str, episodes: int = 3) -> Any:
    """RSD of a policy that always pushes; Replay has Exposure's draws, so all else is the gate."""
    env = GatedFeed(mode)
    try:
        return rapo.rsd.evaluate(
            env, lambda x: 1, episodes=episodes, coupled=True, horizons=(30, 10, 30)
        )
    finally:
        env.close()


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "SQLite")
    for mode in ("shadow", "enforce"):
        found = diagnose(mode).summary()
        told = ", ".join(f"{name} {found[name]['mean']:.2f}" for name in ("RAG", "AUC_R", "SM_R"))
        print(f"{mode:8} {told}")
