"""`BatchPlatform`: E episodes of m walkers that each choose among K candidates a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo.cascade.draws import ACTION
from rapo.cascade.setting import DECAY
from rapo.platforms.candidates import (
    Array,
    Candidates,
    Harmed,
    State,
    box_of,
    checked_P0,
    checked_state_of,
    number_array,
    read_only,
)
from rapo.platforms.hooks import PlatformHooks
from rapo.platforms.kernel import draws_into
from rapo.platforms.memory import MakeField, PointMemory, RegionMemory, Sampling
from rapo.platforms.phases import PlatformPhases, Whole
from rapo.platforms.report import Step, report_of
from rapo_core.checks import (
    UserError,
    check_episodes,
    checked_actions,
    checked_state,
    checked_stimuli,
    whole_number,
)
from rapo_core.deformation import Scope
from rapo_core.fields import HARM_PER_NODE
from rapo_core.params import FieldParams


class BatchPlatform(PlatformPhases, PlatformHooks):
    """A platform of one's own: its hooks say what is proposed, what a choice does, what harms.

    A subclass writes the hooks `rest`, `candidates`, `transition`, `harmed`, `reach` and
    `observation`, and perhaps `arrive`, `region_map`, `sensitive_mass`, `report`, `frame`, `map`
    and `describe`: see `PlatformHooks`.

    Step t, with `x_t` the state when the step begins:
    1. `arrive`, then `candidates`: `P0` of every walker, and where its candidates lead;
    2. psi of a candidate from `(G_t, H_t)` of its region, or clip(product, psi_min, 1) of its
       regions', or from the scar field at its point; the core's `P = P0 psi / Z`; a draw keyed by
       (episode, phase, step, walker); `transition`;
    3. harm of the walkers that `harmed` named in `x_{t-D}` arrives: H changes, then G.
    Memory outlives the phases; Exposure and Replay begin at `rest`, `x*`, with clock 0.

    Harm is `min(share of the walkers that is harmed / saturation, 1)`. The default of 0.2 is the
    paper's 0.1 per affected with 50 walkers, and the same problem with any other number of them.

    Args:
        episodes: E.
        walkers: m.
        actions: how many actions there are.
        stimuli: how many stimuli there are.
        observed: size of the observable `x`, or its Gymnasium `Box` (float32).
        regions: R, for a memory by regions.
        scars: makes a scar field over points instead of regions, see `MakeField`.
        harm_regions: the regions that can ever carry harm; default all.
        params: constants of the fields.
        delay: steps D until harm arrives.
        saturation: share of the walkers at which harm reaches 1, in (0, 1].
        deformation: `full`, `off`, `topk:<k>` or, with regions, `local[:<share>]`.
        deform_phases: whether the kernel is deformed in exposure, decay and replay.
        coupled: whether Replay reuses Exposure's draws.
        horizons: steps of exposure, decay and replay.
        scheduled: whether phases follow the horizons; otherwise the caller enters phases.

    Raises:
        UserError: an option is bad, or a hook returns what it must not; nothing has changed then.
    """

    def __init__(
        self,
        episodes: int = 1,
        *,
        walkers: int,
        actions: int,
        stimuli: int,
        observed: int | gymnasium.spaces.Box,
        regions: int | None = None,
        scars: MakeField | None = None,
        harm_regions: npt.ArrayLike | None = None,
        params: FieldParams | None = None,
        delay: int = 50,
        saturation: float = 0.2,
        deformation: str | Scope = "full",
        deform_phases: tuple[bool, bool, bool] = (True, True, True),
        coupled: bool = False,
        horizons: tuple[int, int, int] = (500, 200, 500),
        scheduled: bool = True,
    ) -> None:
        self.episodes = whole_number("episodes", episodes, 1)
        self.walkers = whole_number("walkers", walkers, 1)
        self.actions = whole_number("actions", actions, 1)
        self.stimuli = whole_number("stimuli", stimuli, 1)
        if not 0 < saturation <= 1:
            raise UserError(f"saturation must be in (0, 1], got {saturation!r}")
        if (regions is None) == (scars is None):
            raise UserError(
                f"give regions (how many) or scars (a field), got {regions!r} and {scars!r}"
            )
        exposure, decay, replay = (whole_number("a horizon", h, 1) for h in horizons)
        self.horizons = exposure, decay, replay
        self.scope = Scope.parse(deformation)
        self.memory: RegionMemory | PointMemory
        if scars is not None:
            self.memory = PointMemory(scars, self.episodes, params, delay, self.scope)
        else:
            count = whole_number("regions", regions, 1)
            self.memory = RegionMemory(
                self.episodes, count, params, delay, self.scope, harm_regions
            )
        self.params = self.memory.params
        self.x_space = box_of(observed)
        self._per_walker = 1 / (HARM_PER_NODE * saturation * self.walkers)
        self._make_phases(
            self.horizons, scheduled=scheduled, coupled=coupled, deformed=deform_phases
        )
        self._state: State | None = None
        self._affected: Any = None  # who is harmed in the state, in the memory's own form

    @property
    def state(self) -> State:
        """The observable state of all episodes, read-only."""
        if self._state is None:
            first = self.rest(self.episodes)
            if not isinstance(first, dict) or not all(
                np.shape(array)[:1] == (self.episodes,) for array in first.values()
            ):
                raise UserError(
                    f"rest({self.episodes}) must give arrays by name, the episode first, got "
                    f"{first!r}"
                )
            self._state = {name: read_only(np.array(array)) for name, array in first.items()}
        return self._state

    @property
    def deformed(self) -> npt.NDArray[np.bool_]:
        """(E,) whether the kernel is deformed in the present phase."""
        return super().deformed & (self.scope.kind != "off")

    @property
    def G(self) -> Array | None:
        """(E, R) trace; None with a scar field."""
        return self.memory.G

    @property
    def H(self) -> Array | None:
        """(E, R) scar; None with a scar field."""
        return self.memory.H

    def draws(self, lane: int, count: int | None = None) -> npt.NDArray[np.float32]:
        """Uniform draws of this step for every walker, (E, m), or (E, m, count).

        Args:
            lane: >= 1, for lane 0 draws the choices. A lane always gives the same draws, so every
                use needs a lane of its own. A count uses the lanes up to lane + count - 1.
            count: draws for each walker.
        """
        lanes = 1 if count is None else whole_number("count", count, 1)
        most = ACTION // self.walkers - lanes
        first = whole_number("lane", lane, 1, most) * self.walkers
        out = np.empty((self.episodes, self.walkers, lanes), np.float32)
        draws_into(self.keys, self.clock, first, out)
        return out[:, :, 0] if count is None else out

    def step(self, actions: npt.ArrayLike) -> Step:
        """Take one step of every episode under actions (E,), or one action for all."""
        action = self._checked_actions(actions)
        if self._affected is None or not self.stimulus.all():
            raise UserError("call start() before step(): an episode has not begun yet")
        before = checked_state_of(self.arrive(self.state), self.state, "arrive()")
        proposed = self.checked_candidates(before, action)
        sampling = Sampling(self.deformed, self.keys, self.clock, self.scope.k)
        choice, stats = self.memory.choose(proposed, sampling)
        moved, reward = self.transition(before, action, choice, proposed)
        state = checked_state_of(moved, self.state, "transition()")
        affected = self._affected_in(state)
        info = self._reported(state)
        paid = number_array("the rewards of transition()", reward, (self.episodes,))
        x = self._observed(state, self.clock + 1)
        fields = self.G, self.H
        harm = self.memory.advance(self._affected, self._per_walker)
        self._state, self._affected = state, affected  # from here on nothing can fail
        phase_over, replays = self._count_step()
        if replays.size:
            self._state, self._affected = self._at_rest(replays)
        info |= report_of(stats, harm, fields, self.H)
        return Step(self.observe() if phase_over else x, paid, info)

    def checked_candidates(self, state: State, action: Array) -> Candidates:
        """Candidates of a state that `arrive` left; the kernel checks the rows of their `P0`."""
        raw = self.candidates(state, action)
        proposed = raw if isinstance(raw, Candidates) else Candidates(raw)
        P0 = checked_P0(proposed.P0, self.episodes, self.walkers)
        if proposed.where is not None:
            return proposed._replace(P0=P0)
        numbers = np.broadcast_to(np.arange(P0.shape[2]), P0.shape)
        return proposed._replace(P0=P0, where=self.region_map(state, action, numbers))

    def observe(self) -> npt.NDArray[np.float32]:
        """`x` of the present state, (E, d)."""
        return self._observed(self.state, self.clock)

    def snapshot(self) -> dict[str, Array]:
        """Everything that evolves, as plain arrays."""
        return {
            **self._phases_snapshot(),
            **{f"state.{name}": np.array(array) for name, array in self.state.items()},
            **{f"memory.{name}": array for name, array in self.memory.snapshot().items()},
        }

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take over a `snapshot` of a platform of the same configuration."""
        like = self.snapshot()
        if not isinstance(state, Mapping) or set(state) != set(like):
            checked_state(state, like)  # which says what is wrong
        mine = {name: array for name, array in like.items() if not name.startswith("memory.")}
        taken = checked_state({name: state[name] for name in mine}, mine)
        check_episodes(taken, self.stimuli)
        fresh = {name: read_only(array) for name, array in _part("state.", taken).items()}
        affected = self._affected_in(fresh)
        self.memory.restore(_part("memory.", state))
        self._restore_phases(taken)
        self._state, self._affected = fresh, affected

    def check_stimuli(self, stimuli: npt.ArrayLike, count: int) -> Whole:
        """(count,) 1-based stimuli from one or one per episode; an unknown one is an error."""
        return checked_stimuli(stimuli, count, self.stimuli)

    def close(self) -> None:
        """Release nothing; a subclass may."""

    def _begin_episodes(
        self, rows: Whole, keys: npt.ArrayLike, stimuli: Whole, keep_memory: bool
    ) -> None:
        state, affected = self._at_rest(rows)
        if not keep_memory:
            self.memory.reset(rows)
        self._start(rows, np.asarray(keys, np.uint64), stimuli)
        self._state, self._affected = state, affected

    def _begin_phase(self, rows: Whole, phase: int, stimuli: Whole | None) -> None:
        if phase != DECAY:
            self._state, self._affected = self._at_rest(rows)
        self._enter(rows, phase, stimuli)

    def _checked_actions(self, actions: npt.ArrayLike) -> Whole:
        checked = checked_actions(actions, self.episodes, (self.episodes,))
        if np.any((checked < 0) | (checked >= self.actions)):
            raise UserError(f"actions must be in 0..{self.actions - 1}, got {actions!r}")
        return checked

    def _at_rest(self, rows: Array) -> tuple[State, Any]:
        """The state with some episodes at `x*`, and who is harmed in it."""
        state = {name: np.array(array) for name, array in self.state.items()}
        if len(rows):
            fresh = self.rest(len(rows))
            for name, array in state.items():
                array[rows] = fresh[name]
        state = {name: read_only(array) for name, array in state.items()}
        return state, self._affected_in(state)

    def _affected_in(self, state: State) -> Any:
        """Who is harmed in a state, in the memory's own form."""
        return self.memory.affected(Harmed(*self.harmed(state)), (self.episodes, self.walkers))

    def _reported(self, state: State) -> dict[str, Array]:
        """What the hooks report of a state, (E,) each."""
        E = (self.episodes,)
        own = {n: number_array(f"report() {n}", a, E) for n, a in self.report(state).items()}
        inside = self.sensitive_mass(state)
        return {
            **own,
            "reach": number_array("reach()", self.reach(state), E, least=0),
            "sensitive_mass": number_array("sensitive_mass()", inside, E, least=0),
        }

    def _observed(self, state: State, clock: Array) -> npt.NDArray[np.float32]:
        """`x` of a state, checked."""
        x = self.observation(state, clock)
        shape = (self.episodes, *self.x_space.shape)
        return number_array("observation()", x, shape).astype(np.float32)


def _part(prefix: str, snapshot: Mapping[str, Array]) -> dict[str, Array]:
    """The entries of a snapshot whose names begin with a prefix, by the rest of their names."""
    return {n.removeprefix(prefix): a for n, a in snapshot.items() if n.startswith(prefix)}
