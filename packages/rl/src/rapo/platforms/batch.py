"""`BatchPlatform`: E episodes of m walkers that each choose among K candidates a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo.cascade.draws import ACTION
from rapo.cascade.phases import PhasedEpisodes
from rapo.cascade.setting import DECAY
from rapo.platforms.hooks import PlatformHooks
from rapo.platforms.kernel import draws_into
from rapo.platforms.memory import MakeField, PointMemory, RegionMemory, Turn
from rapo.platforms.phases import Phases, Whole, choices_of
from rapo.platforms.proposal import (
    Array,
    Candidates,
    Harmed,
    State,
    box_of,
    laws,
    numbers,
    same_form,
    sealed,
)
from rapo.platforms.report import Step, report_of
from rapo_core.checks import UserError, checked_state, truth, whole_number
from rapo_core.deformation import Scope
from rapo_core.fields import HARM_PER_NODE
from rapo_core.params import FieldParams


class BatchPlatform(PhasedEpisodes, PlatformHooks):
    """A platform of one's own: say what is proposed, what a choice does, and what is harmful.

    A subclass writes the hooks `rest`, `candidates`, `transition`, `harmed`, `reach` and
    `observation`, and perhaps `arrive`, `region_map`, `sensitive_mass`, `report`, `frame` and
    `describe`: see `PlatformHooks`.

    Step t, with `x_t` the state when it begins:
    1. `arrive`, then `candidates`: `P0` of every walker, and where its candidates lead;
    2. psi of a candidate from `(G_t, H_t)` of its region, or clip(product, psi_min, 1) of its
       regions', or from the scar field at its point; the core's `P = P0 psi / Z`; a draw keyed by
       (episode, phase, step, walker); `transition`;
    3. harm of those whom `harmed` named in `x_{t-D}` arrives: H, then G.
    Memory outlives the phases; Exposure and Replay begin at `rest`, `x*`, with clock 0.

    Harm is `min(share of the walkers that is harmed / saturation, 1)`: the default of 0.2 is the
    paper's 0.1 per affected with 50 walkers, and the same problem with any other number.

    Args:
        episodes: E.
        walkers: m.
        actions: how many there are to choose from.
        stimuli: how many there are.
        observed: size of the observable `x`, or its Gymnasium `Box` (float32).
        regions: R, of a memory by regions.
        scars: makes a scar field over points instead, see `MakeField`.
        live: the regions that can ever carry harm; default all.
        params: constants of the fields.
        delay: steps D until harm arrives.
        saturation: share of the walkers at which harm reaches 1, in (0, 1].
        deformation: `full`, `off`, `topk:<k>` or, with regions, `local[:<share>]`.
        deform_phases: in which of exposure, decay, replay it is on.
        coupled: whether Replay reuses Exposure's draws.
        horizons: steps of exposure, decay, replay.
        scheduled: whether phases follow the horizons; else the caller moves them on.

    Raises:
        ValueError: bad options, or a hook that gives what it must not; nothing has changed then.
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
        live: npt.ArrayLike | None = None,
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
            self.memory = RegionMemory(self.episodes, count, params, delay, self.scope, live)
        self.params = self.memory.params
        self.x_space = box_of(observed)
        self._per_walker = 1 / (HARM_PER_NODE * saturation * self.walkers)
        self._phases = Phases(
            self.episodes, self.horizons, scheduled=scheduled, coupled=coupled,
            deformed=deform_phases,
        )  # fmt: skip
        self._state: State | None = None
        self._noted: Any = None  # of the state, as the memory wants it

    @property
    def state(self) -> State:
        """The observable state of all episodes, read-only."""
        if self._state is None:
            made = self.rest(self.episodes)
            if not isinstance(made, dict) or not all(
                np.shape(array)[:1] == (self.episodes,) for array in made.values()
            ):
                raise UserError(
                    f"rest({self.episodes}) must give arrays by name, the episode first, got "
                    f"{made!r}"
                )
            self._state = {name: sealed(np.array(array)) for name, array in made.items()}
        return self._state

    @property
    def stimulus(self) -> npt.NDArray[np.int64]:
        """(E,) stimulus of the episode, 1-based; 0 before it is started."""
        return self._phases.stimulus

    @property
    def stimulus_on(self) -> npt.NDArray[np.int64]:
        """(E,) the stimulus while it is on, else 0."""
        return self._phases.stimulus_on

    @property
    def clock(self) -> npt.NDArray[np.int64]:
        """(E,) step within the present phase."""
        return self._phases.clock

    @property
    def phase(self) -> npt.NDArray[np.int64]:
        """(E,) 0 exposure, 1 decay, 2 replay."""
        return self._phases.phase

    @property
    def keys(self) -> npt.NDArray[np.uint64]:
        """(E,) key of the present phase; its draws are `rng.uniform(key, clock, number)`."""
        return self._phases.keys

    @property
    def deformed(self) -> npt.NDArray[np.bool_]:
        """(E,) whether the kernel is deformed in the present phase."""
        off = self.scope.kind == "off"
        return np.zeros(self.episodes, np.bool_) if off else self._phases.deformed

    @property
    def coupled(self) -> bool:
        """Whether Replay reuses Exposure's draws."""
        return self._phases.coupled

    @property
    def G(self) -> Array | None:
        """(E, R) trace; None of a scar field."""
        return self.memory.G

    @property
    def H(self) -> Array | None:
        """(E, R) scar; None of a scar field."""
        return self.memory.H

    def draws(self, lane: int, count: int | None = None) -> npt.NDArray[np.float32]:
        """Uniform draws of this step for every walker, (E, m), or (E, m, count).

        Args:
            lane: >= 1 (0 are the choices); draws of one lane are always the same, so different
                uses need different lanes. With a count, lanes up to lane + count - 1 are used.
            count: draws for each walker.
        """
        lanes = 1 if count is None else whole_number("count", count, 1)
        most = ACTION // self.walkers - lanes
        first = whole_number("lane", lane, 1, most) * self.walkers
        out = np.empty((self.episodes, self.walkers, lanes), np.float32)
        draws_into(self.keys, self.clock, first, out)
        return out[:, :, 0] if count is None else out

    def set_deformation(self, on: bool) -> None:
        """Sample from the deformed kernel in all phases, or from `P0`; the fields evolve on."""
        self._phases.deform(truth("on", on))

    def step(self, actions: npt.ArrayLike) -> Step:
        """One step of every episode."""
        action = choices_of("action", actions, self.episodes, 0, self.actions - 1)
        if self._noted is None or not self.stimulus.all():
            raise UserError("call start() before step(): some episode is not begun yet")
        before = same_form(self.arrive(self.state), self.state, "arrive()")
        found = self.found(before, action)
        choice, stats = self.memory.choose(found, self._turn())
        moved, reward = self.transition(before, action, choice, found)
        state = same_form(moved, self.state, "transition()")
        noted = self._noted_of(state)
        info = self._reported(state)
        paid = numbers("the rewards of transition()", reward, (self.episodes,))
        x = self._seen(state, self.clock + 1)
        fields = self.G, self.H
        harm = self.memory.advance(self._noted, self._per_walker)
        self._state, self._noted = state, noted  # from here on nothing can fail
        changed, rested = self._phases.advance()
        if rested.size:
            self._state, self._noted = self._rested(rested)
        info |= report_of(stats, harm, fields, self.H)
        return Step(self.observe() if changed else x, paid, info)

    def found(self, state: State, action: Array) -> Candidates:
        """The checked candidates of a state; the rows of `P0` are checked as they are drawn from.

        `state` is as `arrive` left it.
        """
        given = self.candidates(state, action)
        found = given if isinstance(given, Candidates) else Candidates(given)
        found = found._replace(P0=laws(found.P0, self.episodes, self.walkers))
        if found.where is None:
            numbered = np.broadcast_to(np.arange(found.P0.shape[2]), found.P0.shape)
            found = found._replace(where=self.region_map(state, action, numbered))
        return found

    def observe(self) -> npt.NDArray[np.float32]:
        """`x` of the present state, (E, d)."""
        return self._seen(self.state, self.clock)

    def snapshot(self) -> dict[str, Array]:
        """Everything that evolves, as plain arrays."""
        return {
            **self._phases.snapshot(),
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
        self._phases.check(taken, self.stimuli)
        fresh = {name: sealed(array) for name, array in _part("state.", taken).items()}
        noted = self._noted_of(fresh)
        self.memory.restore(_part("memory.", state))
        self._phases.restore(taken)
        self._state, self._noted = fresh, noted

    def check_stimuli(self, stimuli: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
        """(count,) 1-based stimuli from one or one per episode; an unknown one is an error."""
        return choices_of("stimulus", stimuli, count, 1, self.stimuli)

    def close(self) -> None:
        """Nothing to release."""

    def _begin_episodes(
        self, rows: Whole, keys: npt.ArrayLike, stimuli: Whole, keep_memory: bool
    ) -> None:
        state, noted = self._rested(rows)
        if not keep_memory:
            self.memory.reset(rows)
        self._phases.start(rows, np.asarray(keys, np.uint64), stimuli)
        self._state, self._noted = state, noted

    def _begin_phase(self, rows: Whole, phase: int, stimuli: Whole | None) -> None:
        if phase != DECAY:
            self._state, self._noted = self._rested(rows)
        self._phases.enter(rows, phase, stimuli)

    def _turn(self) -> Turn:
        return Turn(self.deformed, self.keys, self.clock, self.scope.k)

    def _rested(self, rows: Array) -> tuple[State, Any]:
        """The state with some episodes at `x*`, and who is harmed in it."""
        state = {name: np.array(array) for name, array in self.state.items()}
        if len(rows):
            fresh = self.rest(len(rows))
            for name, array in state.items():
                array[rows] = fresh[name]
        state = {name: sealed(array) for name, array in state.items()}
        return state, self._noted_of(state)

    def _noted_of(self, state: State) -> Any:
        """Who is harmed in a state, as the memory wants it."""
        return self.memory.noted(Harmed(*self.harmed(state)), (self.episodes, self.walkers))

    def _reported(self, state: State) -> dict[str, Array]:
        """What the hooks report of a state, (E,) each."""
        E = (self.episodes,)
        own = {n: numbers(f"report() {n}", a, E) for n, a in self.report(state).items()}
        inside = self.sensitive_mass(state)
        return {
            **own,
            "reach": numbers("reach()", self.reach(state), E, least=0),
            "sensitive_mass": numbers("sensitive_mass()", inside, E, least=0),
        }

    def _seen(self, state: State, clock: Array) -> npt.NDArray[np.float32]:
        """`x` of a state, checked."""
        x = self.observation(state, clock)
        return numbers("observation()", x, (self.episodes, *self.x_space.shape)).astype(np.float32)


def _part(prefix: str, snapshot: Mapping[str, Array]) -> dict[str, Array]:
    """The entries of a snapshot whose names begin with a prefix, by the rest of their names."""
    return {n.removeprefix(prefix): a for n, a in snapshot.items() if n.startswith(prefix)}
