"""`GraphDiffusionVectorEnv`: many episodes of the platform behind Gymnasium's vector interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
from rapo.cascade.regions import RegionSpec
from rapo.cascade.setting import AGGRESSIVE, DECAY, PHASES, REPLAY, Setting
from rapo.envs.episodes import EpisodesVectorEnv, Info, Obs
from rapo.envs.field_summary import SUMMARY, field_summary
from rapo.envs.render import GraphRenderer
from rapo.envs.task import X_SIZE, X_START, GraphTask, observable, report_of, reward_of
from rapo.graphs.fit import Fit, chosen_fit, need_graph, point_of, warn_if_idle
from rapo.graphs.generate import generate
from rapo_core.checks import UserError, one_of, whole_number
from rapo_core.deformation import Scope
from rapo_core.operating_point import OperatingPoint
from rapo_core.params import FieldParams


class GraphDiffusionVectorEnv(EpisodesVectorEnv):
    """`num_envs` RSD episodes side by side, one kernel call per step.

    Actions: 0 aggressive, 1 moderate, 2 conservative injection. A plain `reset` draws a stimulus
    and runs exposure, decay and replay by itself (truncated at their end); with
    `schedule="external"` the caller moves phases on with `begin`. Sub-environment i of
    `reset(seed=s)` equals a single environment with seed `s + i`, bit by bit.

    `info` describes the step taken: harm (also as `cost`), cost_G, cost_H, scar_mass, reach,
    sensitive_mass, served, entry_nominal, entry_deformed, odds_ratio, event_odds_ratio; and the
    present stimulus, phase and clock; each (num_envs,). A step that only resets (autoreset
    `NextStep`) reports zeros and NaN ratios. The `info` of `reset` also tells the outcome of a fit:
    fit_regions, fit_tau, fit_odds (calibrated), fit_share, fit_selectivity.

    A graph of one's own is fitted by default (`rapo.fit`): regions and tau by a measured odds
    ratio. Given `regions` leave tau to be fitted, given `params` the regions, both together
    nothing. Where next to nothing can scar, an `IdleWarning` says so, once.

    Args:
        num_envs: number of episodes.
        nodes: size of a generated graph, default 250.
        graph_seed: of a generated graph, default 0.
        graph: a graph of one's own, instead of `nodes` and `graph_seed`.
        regions: region spec, array or callable, see `make_regions`; default those of the fit,
            without one those of the setting.
        deformation: `full` (RAPO), `off` (`P0`), `topk:<k>` or `local[:<share>]`.
        deform_phases: in which of exposure, decay, replay the deformation is on; (True, True,
            False) is off@rep.
        observe: `x`, `xGH` to append the fields of all regions, or `xsummary` to append ten
            numbers of them (`field_summary`), the same size on every graph.
        setting: open choices of the platform.
        params: constants of the fields; default those of the fit, without one the paper's.
        fit: True or False; None fits a graph of one's own and leaves a generated one alone; or a
            `Fit` of this graph.
        coupled: whether Replay reuses Exposure's draws.
        harm_region_of: (n,) region that receives the harm of a sensitive node; default its own.
        schedule: `rsd` or `external`.
        autoreset_mode: `NextStep`, `SameStep` or `Disabled` (Gymnasium's `AutoresetMode`).
        backend: of the engine, see `Cascade`.
        threads: of the engine.
        render_mode: None or `rgb_array`.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        nodes: int | None = None,
        graph_seed: int | None = None,
        graph: Graph | None = None,
        regions: RegionSpec | None = None,
        deformation: str | Scope = "full",
        deform_phases: tuple[bool, bool, bool] = (True, True, True),
        observe: str = "x",
        setting: Setting | None = None,
        params: FieldParams | None = None,
        fit: bool | Fit | None = None,
        coupled: bool = False,
        harm_region_of: npt.ArrayLike | None = None,
        schedule: str = "rsd",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        backend: str = "auto",
        threads: int = 1,
        render_mode: str | None = None,
    ) -> None:
        if graph is not None and (nodes is not None or graph_seed is not None):
            raise UserError(
                f"give either graph or nodes and graph_seed, got a graph and nodes={nodes}, "
                f"graph_seed={graph_seed}"
            )
        num_envs = whole_number("num_envs", num_envs, 1)
        setting = Setting.default() if setting is None else setting
        if graph is None:
            seed = 0 if graph_seed is None else graph_seed
            graph = generate(250 if nodes is None else nodes, seed, setting)
        need_graph(graph)
        self.region_spec = regions if isinstance(regions, str | None) else "explicit"
        own_fit = chosen_fit(graph, fit, regions=regions, params=params, setting=setting)
        if own_fit is not None:
            regions = own_fit.regions if regions is None else regions
            params = own_fit.params if params is None else params
            self.region_spec = self.region_spec or own_fit.spec
        task = GraphTask(
            graph=graph, setting=setting, regions=regions, params=params, fit=own_fit,
            deformation=deformation, deform_phases=deform_phases, observe=observe, coupled=coupled,
            harm_region_of=harm_region_of, schedule=schedule, autoreset_mode=autoreset_mode,
            backend=backend, threads=threads, render_mode=render_mode,
        )  # fmt: skip
        self._make(num_envs, task)

    def _make(self, num_envs: int, task: GraphTask) -> None:
        for name, known in _KNOWN.items():
            one_of(name, getattr(task, name), known)
        graph, self.graph, self.setting = task.graph, task.graph, task.setting
        self.observe, self.render_mode = task.observe, task.render_mode
        self.engine: Cascade = Cascade(
            graph,
            num_envs,
            setting=task.setting,
            params=task.params,
            regions=task.regions,
            deformation=task.deformation,
            deform_phases=task.deform_phases,
            coupled=task.coupled,
            scheduled=task.schedule == "rsd",
            harm_region_of=task.harm_region_of,
            backend=task.backend,
            threads=task.threads,
        )
        regions, params = self.engine.regions, self.engine.params
        self.fit = task.fit if task.fit and task.fit.in_force(regions, params) else None
        # With other constants or regions than the fit measured, its odds would mean nothing. The
        # task holds the regions and constants that were found, so a copy fits nothing.
        self.task = replace(task, regions=regions, params=params, fit=self.fit)
        if self.engine.scope.kind != "off" and any(task.deform_phases):
            warn_if_idle(graph, regions, params, task.setting)
        size = X_SIZE + (2 if task.setting.show_stimulus else 0)
        seeds = graph.positions[graph.support]
        self._entrances = np.einsum("zk,zkd->zd", graph.weights, seeds).astype(np.float32)
        high = np.full(size + self._fields(), np.inf, np.float32)
        high[:4] = high[X_SIZE:size] = 1
        self.single_observation_space = gymnasium.spaces.Box(np.zeros_like(high), high)
        self.single_action_space = gymnasium.spaces.Discrete(3)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._served_at_most = self.engine.rates[:, AGGRESSIVE].sum(axis=1, dtype=np.float64)
        self._renderer: GraphRenderer | None = None
        self._open(num_envs, task.schedule, task.autoreset_mode, size)
        self._x[:, :X_SIZE], self._x[:, X_SIZE:] = X_START, CENTRE

    def _task_with(self, changes: Mapping[str, Any]) -> GraphTask:
        names = [field.name for field in fields(self.task)]
        unknown = sorted(set(changes) - set(names))
        if unknown:
            raise UserError(f"no option is called {unknown}; there are {names}")
        changed: GraphTask = replace(self.task, **changes)
        return changed

    @property
    def options(self) -> dict[str, Any]:
        """Arguments that make this environment again, but for `num_envs`."""
        made = {field.name: getattr(self.task, field.name) for field in fields(self.task)}
        return {**made, "fit": self.fit or False}

    def __repr__(self) -> str:
        kind = f"{self.num_envs} x {self.graph.n:,} nodes, deformation {self.engine.scope}"
        constants = f"{self.engine.region_count:,} regions, tau {self.engine.params.tau:.3g}"
        return f"{type(self).__name__}({kind}; {self.fit or f'not fitted, {constants}'})"

    __str__ = __repr__

    @property
    def operating_point(self) -> OperatingPoint:
        """Which regions can scar in a nominal Exposure."""
        engine = self.engine
        return point_of(self.graph, engine.regions, engine.params, self.setting)

    @property
    def stimuli(self) -> int:
        """Number of stimuli, numbered from 1."""
        return int(self.graph.stimuli)

    @property
    def horizons(self) -> tuple[int, int, int]:
        """Steps of exposure, decay and replay."""
        return self.setting.horizons

    @property
    def memory_mask(self) -> npt.NDArray[np.bool_] | None:
        """(d,) entries of the observation that show the fields; None with `observe="x"`."""
        if self.observe == "x":
            return None
        size = self._x.shape[1]
        mask = np.ones(size + self._fields(), np.bool_)
        mask[:size] = False
        return mask

    def describe(self) -> dict[str, Any]:
        """Describe the environment for a manifest."""
        deforms = self.engine.scope.kind != "off" and any(self.task.deform_phases)
        return {
            "graph_hash": self.graph.hash,
            "graph": dict(self.graph.meta),
            "setting": self.setting.to_dict(),
            "params": self.engine.params.to_dict(),
            "deformation": str(self.engine.scope),
            "deform_phases": list(self.task.deform_phases),
            "regions": self.region_spec,
            "fit": None if self.fit is None else {**self.fit.outcome(), "words": str(self.fit)},
            "operating_point": self.operating_point.to_dict() if deforms else None,
            "observe": self.observe,
        }

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that evolves, as plain arrays."""
        return {"graph": np.array(self.graph.hash), **super().snapshot()}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> tuple[Obs, Info]:
        """Take over a `snapshot` of an environment with the same graph and configuration."""
        if isinstance(state, Mapping) and str(state.get("graph", self.graph.hash)) != (
            self.graph.hash
        ):
            raise UserError(
                f"the snapshot is of graph {state['graph']}, this environment has {self.graph.hash}"
            )
        return super().restore(state)

    def render(self) -> tuple[Any, ...] | None:
        """An RGB array (H, W, 3) of every episode, if `render_mode` is `rgb_array`."""
        if self.render_mode is None:
            return None
        if self._renderer is None:
            self._renderer = GraphRenderer(self.graph, self.engine.regions)
        active, H = self.engine.active, self.engine.H
        phase, clock = self.engine.phase, self.engine.clock
        return tuple(
            self._renderer.draw(active[i], H[i], PHASES[phase[i]], int(clock[i]))
            for i in range(self.num_envs)
        )

    @property
    def runs_whole_phases(self) -> bool:  # type: ignore[override]
        """Whether `run` gives what as many calls of `step` give; a subclass may change `step`."""
        return type(self) is GraphDiffusionVectorEnv

    def run(self, action: int, steps: int) -> tuple[npt.NDArray[np.float64], Info]:
        """`steps` steps of all episodes with one action, in one kernel call.

        For callers that look at no observation on the way and move the phases on themselves
        (`schedule="external"`); the numbers are those of as many calls of `step`.

        Returns:
            Rewards (steps, num_envs), and the `info` of the steps, (steps, num_envs) each.
        """
        if self.schedule != "external" or self._done.any():
            raise UserError(
                f"run() needs schedule='external' and episodes that are begun, got schedule="
                f"{self.schedule!r}; call reset() or begin() first"
            )
        stats = self.engine.run(action, steps).swapaxes(0, 1)
        last, clock = stats[:, -1], self.engine.clock
        self._x = observable(
            last, clock, self.graph.n, self.setting.horizons[0], self._entrance_of(slice(None))
        )
        most = self._served_at_most[self.engine.stimulus - 1]
        return reward_of(stats, most, self.setting), report_of(stats)

    def close_extras(self, **kwargs: Any) -> None:
        """Release the figure of the renderer and the threads."""
        self.engine.close()
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _advance(
        self, actions: npt.NDArray[Any], pending: npt.NDArray[np.bool_]
    ) -> tuple[Obs, npt.NDArray[np.float64], Info]:
        stats = self.engine.step(actions)
        clock = self.engine.clock
        x = observable(
            stats, clock, self.graph.n, self.setting.horizons[0], self._entrance_of(slice(None))
        )
        if self.schedule == "rsd":
            x[(self.engine.phase == REPLAY) & (clock == 0), :X_SIZE] = X_START
        reward = reward_of(stats, self._served_at_most[self.engine.stimulus - 1], self.setting)
        stats[:, pending] = 0
        return x, reward, report_of(stats)

    def _entered(self, phase: int, rows: npt.NDArray[np.int64]) -> None:
        if phase == DECAY:
            self._x[rows, 4] = 0
        else:
            self._x[rows, :X_SIZE] = X_START
        self._x[rows, X_SIZE:] = self._entrance_of(rows)

    def _entrance_of(self, rows: npt.NDArray[np.int64] | slice) -> Obs:
        """(rows, 2) centroid of the stimulus' seeds, the square's centre while nothing is injected.

        (rows, 0) where the setting does not show the stimulus.
        """
        stimulus, phase = self.engine.stimulus[rows], self.engine.phase[rows]
        if not self.setting.show_stimulus:
            return np.empty((len(stimulus), 0), np.float32)
        injecting = (phase != DECAY) & (stimulus > 0)
        return np.where(injecting[:, None], self._entrances[stimulus - 1], CENTRE)

    def _observation(self) -> Obs:
        if self.observe == "x":
            return self._x.copy()
        G, H = self.engine.G, self.engine.H
        if self.observe == "xsummary":
            return np.concatenate([self._x, field_summary(G, H, self.engine.params)], axis=1)
        return np.concatenate([self._x, G, H], axis=1)

    def _fields(self) -> int:
        """Entries of the observation that show the memory."""
        sizes = {"x": 0, "xGH": 2 * self.engine.region_count, "xsummary": SUMMARY}
        return sizes[self.observe]

    def _changed(
        self, horizons: tuple[int, int, int], deformed: tuple[bool, bool, bool]
    ) -> dict[str, Any]:
        changed = {
            "setting": self.setting.replace(horizons=horizons),
            "deform_phases": deformed,
        }
        return changed if any(deformed) else {**changed, "deformation": "off"}

    def _reset_info(self) -> Info:
        """The outcome of the fit, each (num_envs,); empty without one."""
        outcome = {} if self.fit is None else self.fit.outcome()
        return {f"fit_{name}": np.full(self.num_envs, value) for name, value in outcome.items()}


CENTRE = np.float32(0.5)
"""Both coordinates of the middle of the unit square."""
_KNOWN: dict[str, tuple[str | None, ...]] = {
    "observe": ("x", "xGH", "xsummary"),
    "schedule": ("rsd", "external"),
    "render_mode": (None, "rgb_array"),
}
