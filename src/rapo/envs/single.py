"""`GraphDiffusionEnv`: one episode of the platform as an ordinary Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from rapo.core.validate import whole_number
from rapo.envs.vector import GraphDiffusionVectorEnv, Info, Obs


class GraphDiffusionEnv(gymnasium.Env[Obs, np.int64]):
    """One RSD episode; takes every option of `GraphDiffusionVectorEnv` but autoreset.

    >>> import gymnasium, rapo
    >>> env = gymnasium.make("rapo/GraphDiffusion-v0", nodes=50, graph_seed=0)
    >>> x, info = env.reset(seed=0, options={"stimulus": 3})
    >>> x, reward, terminated, truncated, info = env.step(0)
    >>> int(info["stimulus"]), terminated
    (3, False)
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - Gymnasium's form

    def __init__(self, *, render_mode: str | None = None, **options: Any) -> None:
        if "num_envs" in options or "autoreset_mode" in options:
            raise ValueError("a single environment has no num_envs and no autoreset_mode")
        self.vector = GraphDiffusionVectorEnv(
            1, render_mode=render_mode, autoreset_mode=AutoresetMode.DISABLED, **options
        )
        self.render_mode = render_mode
        self._chosen: int | None = None
        self.observation_space = self.vector.single_observation_space
        self.action_space = self.vector.single_action_space

    @property
    def graph(self) -> Any:
        """The network."""
        return self.vector.graph

    @property
    def engine(self) -> Any:
        """The `Cascade` with its fields and active set."""
        return self.vector.engine

    @property
    def fit(self) -> Any:
        """The `Fit` of regions and tau to the graph, or None."""
        return self.vector.fit

    def __repr__(self) -> str:
        return repr(self.vector).replace("VectorEnv(1 x ", "Env(")

    __str__ = __repr__

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Obs, Info]:
        """Start a new episode; `options`: `stimulus` (1-based), `keep_memory`."""
        if seed is not None:
            seed = whole_number("seed", seed, 0, 2**63 - 2)
        x, info = self.vector.reset(seed=seed, options=options)
        super().reset(seed=seed)
        return x[0], _first(info)

    def begin(self, phase: str, stimulus: int | None = None) -> Obs:
        """Move to the start of `exposure`, `decay` or `replay`; memory stays."""
        return np.asarray(self.vector.begin(phase, stimulus)[0])

    @property
    def stimuli(self) -> int:
        """Number of stimuli, numbered from 1."""
        return int(self.graph.stimuli)

    @property
    def memory_mask(self) -> npt.NDArray[np.bool_] | None:
        """(d,) entries of the observation that show the fields; None with `observe="x"`."""
        return self.vector.memory_mask

    def activate(self, stimulus: int) -> None:
        """Choose the stimulus (1-based) that `reset_observable` switches on."""
        self._external()
        self._chosen = int(self.engine.check_stimuli(stimulus, 1)[0])

    def deactivate(self) -> None:
        """Switch the stimulus off; the clock of the phase starts anew."""
        self._external()
        self.vector.begin("decay")

    def reset_observable(self, seed: int | None = None) -> Obs:
        """Empty the active set, restart the clock and, with a seed, the draws; memory stays."""
        self._external()
        options: dict[str, Any] = {"keep_memory": True}
        if self._chosen is not None:
            options["stimulus"] = self._chosen
        return np.asarray(self.reset(seed=seed, options=options)[0])

    def set_deformation(self, on: bool) -> None:
        """Sample from the deformed kernel, or from `P0`; the fields evolve either way."""
        self.vector.set_deformation(on)

    def _external(self) -> None:
        if self.vector.schedule != "external":
            raise ValueError(
                "this environment runs its own schedule; make it with schedule='external' to "
                "drive its phases"
            )

    def step(self, action: np.int64 | int) -> tuple[Obs, float, bool, bool, Info]:
        """One step; see `GraphDiffusionVectorEnv` for `info`."""
        x, reward, _, truncated, info = self.vector.step(np.asarray(action).reshape(1))
        return x[0], float(reward[0]), False, bool(truncated[0]), _first(info)

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that evolves, as plain arrays."""
        return self.vector.snapshot()

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> tuple[Obs, Info]:
        """Take over a `snapshot`."""
        x, info = self.vector.restore(state)
        return x[0], _first(info)

    def render(self) -> Any:
        """An RGB array (H, W, 3), if `render_mode` is `rgb_array`."""
        frames = self.vector.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        """Release the renderer."""
        self.vector.close()


def _first(info: Info) -> Info:
    """The info of the only sub-environment, as plain numbers."""
    return {name: value[0].item() for name, value in info.items()}
