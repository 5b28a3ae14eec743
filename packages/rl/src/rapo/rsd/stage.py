"""What RSD asks of an environment that runs its episodes: the `Stage`, and who offers one."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, signature
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError

Array = npt.NDArray[Any]
ARGUMENTS = ("seed", "stimuli", "horizons", "coupled", "deformed")
"""Of an environment's `stage(episodes, ...)`, beside the number of episodes."""


class Stage(Protocol):
    """`episodes` RSD episodes side by side, as `run_phases` drives them.

    Everything but `stimulus` is known when the stage is made, before `begin`: `memory_mask` above
    all, by which the runner decides what to write down from the first step on.
    """

    episodes: int
    seed: int
    """Of the first episode."""
    tags: tuple[int, int, int]
    """Which phases share draws: equal numbers do."""
    memory_mask: npt.NDArray[np.bool_] | None
    """(d,) which entries of an observation show the memory on purpose; None for none."""
    knows_memory: bool
    """Whether the environment says which entries show its memory (perhaps none)."""
    watched: Any
    """The environment that a `Watcher` is shown, all its episodes being here; None for none."""
    graph: Any
    """The graph whose active sets `active` tells; None for none."""

    @property
    def stimulus(self) -> npt.NDArray[np.int64]:
        """(E,) of the running episodes."""
        ...

    def begin(self, phase: int, stimulus: npt.NDArray[np.int64] | None = None) -> Array:
        """Enter a phase; observations (E, d). Replay may be of another stimulus, (E,)."""
        ...

    def keep(self) -> Any:
        """Everything that evolves, for `back`; None if the environment cannot tell."""
        ...

    def back(self, state: Any) -> None:
        """Return to what `keep` gave."""
        ...

    def step(self, actions: Array) -> tuple[Array, Array, dict[str, Array]]:
        """Observations (E, d), rewards (E,), info of (E,) each."""
        ...

    def draws(self, step: int) -> Array:
        """(E,) uniform draws for the actions of a step of the present phase."""
        ...

    def finish(self) -> None:
        """Undo what the stage switched in the environment."""
        ...

    def active(self) -> npt.NDArray[np.bool_] | None:
        """(E, n) active sets, or None without a graph."""
        ...

    def scars(self) -> Array | None:
        """(E, R) scars, or None if the environment does not tell."""
        ...


class Staged(Protocol):
    """An environment that chooses the stage of its episodes; ours and all platforms do.

    It also tells `stimuli` (how many), `horizons` (steps of the phases unless others are asked
    for), its action space (`single_action_space` or `action_space`) and, for the manifest,
    `describe()`.
    """

    def stage(
        self,
        episodes: int,
        *,
        seed: int,
        stimuli: npt.NDArray[np.int64] | None,
        horizons: tuple[int, int, int],
        coupled: bool,
        deformed: tuple[bool, bool, bool],
    ) -> Stage:
        """A stage of the first of `episodes`, or of all: for the rest it is asked again.

        Args:
            episodes: how many are left to run.
            seed: of the first.
            stimuli: (episodes,) 1-based, or None to draw them.
            horizons: steps of the phases.
            coupled: whether Replay reuses Exposure's draws.
            deformed: in which phases the kernel may be deformed; in none: the `P0` twin.
        """
        ...


def chooses_stage(env: Any) -> bool:
    """Whether an environment has a `stage` that takes what `Staged.stage` takes.

    Others may use the name for a thing of their own, so its arguments are looked at. It must be
    of the environment's own class: a proxy that hands on what it lacks would hand on the stage of
    what it stands for, and its own methods would be passed over.
    """
    if not callable(getattr(type(env), "stage", None)):
        return False
    made = env.stage
    try:
        taken = signature(made).parameters
    except (TypeError, ValueError):  # no signature to look at
        return False
    rest = any(p.kind is Parameter.VAR_KEYWORD for p in taken.values())
    return bool(taken) and (rest or all(name in taken for name in ARGUMENTS))


def checked_stimuli(
    stimuli: int | Sequence[int] | None, episodes: int, known: int
) -> npt.NDArray[np.int64] | None:
    """(E,) 1-based stimuli from one or one per episode, or None to draw them."""
    if stimuli is None:
        return None
    z = np.asarray(stimuli)
    if (
        z.dtype.kind not in "iu"
        or z.shape not in ((), (episodes,))
        or z.min() < 1
        or z.max() > known
    ):
        raise UserError(f"stimuli must be in 1..{known}, one or one per episode, got {stimuli!r}")
    return np.broadcast_to(z, (episodes,)).astype(np.int64)
