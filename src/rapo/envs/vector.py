"""`GraphDiffusionVectorEnv`: many episodes of the platform behind Gymnasium's vector interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rapo.cascade.engine import Cascade
from rapo.cascade.fit import Fit, need_graph
from rapo.cascade.fitted import chosen_fit
from rapo.cascade.generate import generate
from rapo.cascade.graph import Graph
from rapo.cascade.idle import point_of, warn_if_idle
from rapo.cascade.regions import RegionSpec
from rapo.cascade.rng import STIMULUS, derive, uniform
from rapo.cascade.setting import AGGRESSIVE, DECAY, PHASES, REPLAY, Setting
from rapo.core.deformation import Scope
from rapo.core.operating_point import OperatingPoint
from rapo.core.params import FieldParams
from rapo.core.validate import checked_state, truth, whole_number
from rapo.envs.render import GraphRenderer
from rapo.envs.task import X_SIZE, X_START, observable, report_of, reward_of

Obs = npt.NDArray[np.float32]
Info = dict[str, Any]
_OPTIONS = ("stimulus", "keep_memory", "reset_mask")


class GraphDiffusionVectorEnv(VectorEnv[Obs, npt.NDArray[Any], npt.NDArray[Any]]):
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
        observe: `x`, or `xGH` to append the fields of all regions.
        setting: open choices of the platform.
        params: constants of the fields; default those of the fit, without one the paper's.
        fit: True or False; None fits a graph of one's own and leaves a generated one alone; or a
            `Fit` of this graph.
        coupled: whether Replay reuses Exposure's draws.
        credit: (n,) region to which the harm of a sensitive node is credited; default its own.
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
        credit: npt.ArrayLike | None = None,
        schedule: str = "rsd",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        backend: str = "auto",
        threads: int = 1,
        render_mode: str | None = None,
    ) -> None:
        if graph is not None and (nodes is not None or graph_seed is not None):
            raise ValueError(
                f"give either graph or nodes and graph_seed, got a graph and nodes={nodes}, "
                f"graph_seed={graph_seed}"
            )
        for name, value, known in (
            ("observe", observe, ("x", "xGH")),
            ("schedule", schedule, ("rsd", "external")),
            ("render_mode", render_mode, (None, "rgb_array")),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {known}, got {value!r}")
        num_envs = whole_number("num_envs", num_envs, 1)
        self.setting = Setting.default() if setting is None else setting
        if graph is None:
            seed = 0 if graph_seed is None else graph_seed
            graph = generate(250 if nodes is None else nodes, seed, self.setting)
        need_graph(graph)
        self.graph = graph
        self.region_spec = _words_of(regions)
        self.fit = chosen_fit(graph, fit, regions=regions, params=params, setting=self.setting)
        if self.fit is not None:
            regions = self.fit.regions if regions is None else regions
            params = self.fit.params if params is None else params
            self.region_spec = self.region_spec or self.fit.spec
        self.observe, self.schedule, self.render_mode = observe, schedule, render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.engine = Cascade(
            graph,
            num_envs,
            setting=self.setting,
            params=params,
            regions=regions,
            deformation=deformation,
            deform_phases=deform_phases,
            coupled=coupled,
            scheduled=schedule == "rsd",
            credit=credit,
            backend=backend,
            threads=threads,
        )
        if self.fit is not None and not self.fit.in_force(self.engine.regions, self.engine.params):
            self.fit = None  # other constants or regions than it measured: its odds mean nothing
        # What `like` builds on is what was found, so that a change of one option refits nothing.
        self.options: dict[str, Any] = {
            "graph": graph, "regions": self.engine.regions, "deformation": deformation,
            "deform_phases": deform_phases, "observe": observe, "setting": setting,
            "params": self.engine.params, "fit": False if self.fit is None else self.fit,
            "coupled": coupled, "credit": credit, "schedule": schedule,
            "autoreset_mode": autoreset_mode, "backend": backend, "threads": threads,
        }  # fmt: skip
        if self.engine.scope.kind != "off" and any(deform_phases):
            warn_if_idle(graph, self.engine.regions, self.engine.params, self.setting)
        self.num_envs = num_envs
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": 10,
            "autoreset_mode": self.autoreset_mode,
        }
        fields = 2 * self.engine.region_count if observe == "xGH" else 0
        high = np.full(X_SIZE + fields, np.inf, np.float32)
        high[:4] = 1
        self.single_observation_space = gymnasium.spaces.Box(np.zeros_like(high), high)
        self.single_action_space = gymnasium.spaces.Discrete(3)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._served_at_most = self.engine.rates[:, AGGRESSIVE].sum(axis=1, dtype=np.float64)
        self._seeds = np.zeros(num_envs, np.uint64)
        self._episode = np.full(num_envs, -1, np.int64)  # -1: not seeded yet
        self._done = np.ones(num_envs, np.bool_)
        self._x = np.tile(X_START, (num_envs, 1))
        self._renderer: GraphRenderer | None = None

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
    def phase(self) -> npt.NDArray[np.int64]:
        """(num_envs,) 0 exposure, 1 decay, 2 replay."""
        return self.engine.phase

    @property
    def stimulus(self) -> npt.NDArray[np.int64]:
        """(num_envs,) stimulus of each episode, 1-based."""
        return self.engine.stimulus

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Obs, Info]:
        """Start new episodes.

        Args:
            seed: sub-environment i takes `seed + i`; or one seed each.
            options: `stimulus` (1-based, one or one per environment; else drawn), `keep_memory`
                (leave fields and delay buffer as they are), `reset_mask` (which to reset).
        """
        options = {} if options is None else options
        if not isinstance(options, Mapping) or set(options) - set(_OPTIONS):
            unknown = sorted(set(options) - set(_OPTIONS))
            raise ValueError(f"unknown reset options {unknown}; known are {list(_OPTIONS)}")
        mask = np.asarray(options.get("reset_mask", np.ones(self.num_envs, np.bool_)))
        if mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise ValueError(f"reset_mask must be bool of shape ({self.num_envs},), got {mask}")
        stimulus = options.get("stimulus")
        if stimulus is not None:
            self.engine.check_stimuli(stimulus, self.num_envs)
        keep_memory = truth("keep_memory", options.get("keep_memory", False))
        each = self._checked_seeds(seed)
        super().reset(seed=int(seed) if isinstance(seed, int | np.integer) else None)
        self._seed(each, mask)
        self._start(mask, stimulus, keep_memory=keep_memory)
        return self._observation(), {**self._info(), **self._fit_info()}

    def like(self, num_envs: int, **changes: Any) -> GraphDiffusionVectorEnv:
        """A new environment of the same class, graph and options, but for `changes`.

        Arguments that a subclass adds come from `options`, or from its attributes of their names;
        a subclass that keeps them in another way must override this.
        """
        from inspect import Parameter, signature

        made, named = type(self), (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        known = {"num_envs", "nodes", "graph_seed", "render_mode", *self.options, *changes}
        takes = [name for name, it in signature(made).parameters.items() if it.kind in named]
        added = [name for name in takes if name not in known]
        own = {name: getattr(self, name) for name in added if hasattr(self, name)}
        problem = f"it takes {added} of its own and does not keep them under these names"
        try:
            if len(own) == len(added):
                twin = made(num_envs, **{**self.options, **own, **changes})
                if all(np.array_equal(getattr(twin, name), own[name]) for name in own):
                    return twin  # else an attribute was not what the argument had been
        except (TypeError, AttributeError) as error:
            problem = f"its constructor does not take the options of ours ({error})"
        raise ValueError(
            f"cannot make another {made.__name__}: {problem}; pass **options on to ours and keep "
            "each argument in an attribute of its name, or override like()"
        )

    def set_deformation(self, on: bool) -> None:
        """Deform the kernel in all phases, or in none; the fields evolve either way."""
        self.engine.set_deformation(on)
        self.options["deform_phases"] = (bool(on),) * 3

    @property
    def memory_mask(self) -> npt.NDArray[np.bool_] | None:
        """(d,) entries of the observation that show the fields; None with `observe="x"`."""
        if self.observe == "x":
            return None
        mask = np.ones(X_SIZE + 2 * self.engine.region_count, np.bool_)
        mask[:X_SIZE] = False
        return mask

    def begin(
        self,
        phase: str,
        stimulus: npt.ArrayLike | None = None,
        episodes: npt.ArrayLike | None = None,
    ) -> Obs:
        """Move episodes to the start of `exposure`, `decay` or `replay`; memory stays.

        Exposure and replay reset the observable state and switch the stimulus on; decay switches
        it off.
        """
        if phase not in PHASES:
            raise ValueError(f"phase must be one of {PHASES}, got {phase!r}")
        if (self._episode < 0).any():
            raise ValueError("call reset() before begin(): there is no episode yet")
        number = PHASES.index(phase)
        self.engine.enter(number, episodes, stimuli=stimulus)
        rows = self.engine.rows_of(episodes)
        self._done[rows] = False
        if number == DECAY:
            self._x[rows, 4] = 0
        else:
            self._x[rows] = X_START
        return self._observation()

    def step(
        self, actions: npt.NDArray[Any]
    ) -> tuple[Obs, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], Info]:
        """One step of every episode; see the class for `info`."""
        pending = self._done.copy()
        resets_itself = self.autoreset_mode is AutoresetMode.NEXT_STEP
        if pending.any() and not (resets_itself and (self._episode >= 0).all()):
            raise ValueError(
                f"episodes {np.flatnonzero(pending)[:5].tolist()} are over or not begun; "
                "call reset() first"
            )
        stats = self.engine.step(actions)
        clock, phase = self.engine.clock, self.engine.phase
        horizons = self.setting.horizons
        truncated = (phase == REPLAY) & (clock >= horizons[REPLAY])
        if self.schedule == "external":
            truncated[:] = False
        self._x = observable(stats, clock, self.graph.n, horizons[0])
        if self.schedule == "rsd":
            self._x[(phase == REPLAY) & (clock == 0)] = X_START
        reward = reward_of(stats, self._served_at_most[self.engine.stimulus - 1], self.setting)
        if pending.any():  # these were over before: their step is the reset, and nothing happened
            self._episode[pending] += 1
            self._start(pending, None, keep_memory=False)
            stats[:, pending] = 0
            reward[pending] = 0
            truncated[pending] = False
        info = {**report_of(stats), **self._info()}
        self._done = truncated.copy()
        if self.autoreset_mode is AutoresetMode.SAME_STEP and truncated.any():
            final = np.full(self.num_envs, None, object)
            last = self._observation()
            for i in np.flatnonzero(truncated):
                final[i] = last[i]
            self._episode[truncated] += 1
            self._start(truncated, None, keep_memory=False)
            info = {
                **info,
                **self._info(),
                "final_obs": final,
                "_final_obs": truncated,
                "final_info": info,
                "_final_info": truncated,
            }
        return self._observation(), reward, np.zeros_like(truncated), truncated, info

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that evolves, as plain arrays."""
        mine = {
            "graph": np.array(self.graph.hash),
            "seeds": self._seeds.copy(),
            "episode": self._episode.copy(),
            "done": self._done.copy(),
            "x": self._x.copy(),
        }
        return {**mine, **{f"engine.{k}": v for k, v in self.engine.snapshot().items()}}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> tuple[Obs, Info]:
        """Take over a `snapshot` of an environment with the same graph and configuration."""
        if isinstance(state, Mapping) and str(state.get("graph", self.graph.hash)) != (
            self.graph.hash
        ):
            raise ValueError(
                f"the snapshot is of graph {state['graph']}, this environment has {self.graph.hash}"
            )
        taken = checked_state(state, self.snapshot())
        if taken["episode"].min() < -1:
            raise ValueError(f"episode must be >= -1, got {taken['episode'].min()}")
        self.engine.restore(
            {k.removeprefix("engine."): v for k, v in taken.items() if k.startswith("engine.")}
        )
        self._seeds, self._episode = taken["seeds"], taken["episode"]
        self._done, self._x = taken["done"], taken["x"]
        return self._observation(), self._info()

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

    def close_extras(self, **kwargs: Any) -> None:
        """Release the figure of the renderer and the threads."""
        self.engine.close()
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _checked_seeds(
        self, seed: int | Sequence[int | None] | None
    ) -> Sequence[int | None] | None:
        """A seed, or None, for every sub-environment."""
        if seed is None:
            return None
        if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str):
            if len(seed) != self.num_envs:
                raise ValueError(f"seed needs {self.num_envs} whole numbers, got {seed!r}")
            return [None if s is None else whole_number("seed", s, 0) for s in seed]
        first = whole_number("seed", seed, 0, 2**63 - 1 - self.num_envs)
        return [first + i for i in range(self.num_envs)]

    def _seed(self, each: Sequence[int | None] | None, mask: npt.NDArray[np.bool_]) -> None:
        if each is None:
            fresh = mask & (self._episode < 0)
            self._seeds[fresh] = self.np_random.integers(2**63, size=int(fresh.sum()))
            self._episode[mask] += 1  # from -1 for the fresh ones
            return
        for i in np.flatnonzero(mask).tolist():
            value = each[i]
            self._seeds[i] = self.np_random.integers(2**63) if value is None else value
            self._episode[i] = 0

    def _start(
        self, mask: npt.NDArray[np.bool_], stimulus: npt.ArrayLike | None, *, keep_memory: bool
    ) -> None:
        rows = np.flatnonzero(mask)
        keys = derive(derive(self._seeds[rows], 0), self._episode[rows])
        if stimulus is None:
            u = uniform(keys, 0, STIMULUS)
            z = 1 + (u.astype(np.float64) * self.graph.stimuli).astype(np.int64)
        else:
            z = np.broadcast_to(np.asarray(stimulus), (self.num_envs,))[rows]
        self.engine.start(keys, z, rows, keep_memory=keep_memory)
        self._x[rows] = X_START
        self._done[rows] = False

    def _observation(self) -> Obs:
        if self.observe == "x":
            return self._x.copy()
        return np.concatenate([self._x, self.engine.G, self.engine.H], axis=1)

    def _fit_info(self) -> Info:
        """The outcome of the fit, each (num_envs,); empty without one."""
        outcome = {} if self.fit is None else self.fit.outcome()
        return {f"fit_{name}": np.full(self.num_envs, value) for name, value in outcome.items()}

    def _info(self) -> Info:
        return {
            "stimulus": self.engine.stimulus,
            "phase": self.engine.phase,
            "clock": self.engine.clock,
        }


def _words_of(regions: Any) -> str | None:
    """How a manifest names regions that were given."""
    return regions if isinstance(regions, str | None) else "explicit"
