"""`GraphDiffusionEnv`: one episode of the platform as an ordinary Gymnasium environment."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode

from rapo.envs.single_base import OneEpisodeEnv
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo_core.checks import UserError


class GraphDiffusionEnv(OneEpisodeEnv):
    """One RSD episode; takes every option of `GraphDiffusionVectorEnv` but autoreset.

    >>> import gymnasium, rapo
    >>> env = gymnasium.make("rapo/GraphDiffusion-v0", nodes=50, graph_seed=0)
    >>> x, info = env.reset(seed=0, options={"stimulus": 3})
    >>> x, reward, terminated, truncated, info = env.step(0)
    >>> int(info["stimulus"]), terminated
    (3, False)
    """

    def __init__(self, *, render_mode: str | None = None, **options: Any) -> None:
        if "num_envs" in options or "autoreset_mode" in options:
            raise UserError("a single environment has no num_envs and no autoreset_mode")
        self._show(
            GraphDiffusionVectorEnv(
                1, render_mode=render_mode, autoreset_mode=AutoresetMode.DISABLED, **options
            )
        )

    @property
    def graph(self) -> Any:
        """The network."""
        return self.vector.graph

    @property
    def fit(self) -> Any:
        """The `Fit` of regions and tau to the graph, or None."""
        return self.vector.fit
