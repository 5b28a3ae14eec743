"""What a platform proposes and who it harms: `Candidates`, `Harmed`, and the checks of both."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError, whole_number

Array = npt.NDArray[Any]
State = dict[str, Array]
"""The observable state of all episodes: arrays by name, the episode first, (E, ...) each."""
NOBODY_KNOWS = np.zeros((0, 0, 0), np.bool_)
"""`harmful` of candidates of which nobody says it."""


class Candidates(NamedTuple):
    """What every walker may choose from in a step."""

    P0: Array
    """(E, m, K) nominal probabilities of the candidates; rows sum to 1, pads have 0."""
    where: Array | None = None
    """Where a candidate leads: regions (E, m, K), or several each (E, m, K, L) with -1 for pads, or
    points (E, m, K, d) of a scar field; None: the platform's `region_map` tells."""
    harmful: Array | None = None
    """bool (E, m, K), candidates that lead into harm, for the odds of harmful entry; None: the
    odds are not told."""
    moving: Array | None = None
    """bool (E, m), walkers that choose now; None: all. The others may have no candidates."""
    items: Any = None
    """Whatever `transition` wants to find again."""


class Harmed(NamedTuple):
    """Who is being harmed now; the harm arrives after the delay."""

    weight: Array
    """(E, m) bool or >= 0: how much of a harmed walker each is."""
    where: Array
    """Regions (E, m) or (E, m, L) with -1 for pads (the harm is shared out), or points (E, m, d);
    read where the weight is above 0."""


def whole(name: str, array: Any, dimensions: int) -> Array:
    """A contiguous array of regions with one more axis for several of them, if it lacks it."""
    given = np.asarray(array)
    if given.dtype.kind not in "iu":
        raise UserError(f"{name} must hold region numbers, got {given.dtype} {given.shape}")
    if given.ndim == dimensions:
        given = given[..., None]
    kind = given.dtype if given.dtype in (np.int32, np.int64) else np.int64
    return np.ascontiguousarray(given, kind)


def flags(name: str, array: Any, shape: tuple[int, ...]) -> Array:
    """A contiguous bool array of a shape."""
    given = np.asarray(array)
    if given.dtype != np.bool_ or given.shape != shape:
        raise UserError(f"{name} must be bool of shape {shape}, got {given.dtype} {given.shape}")
    return np.ascontiguousarray(given)


def numbers(name: str, array: Any, shape: tuple[int, ...], *, least: float = -np.inf) -> Array:
    """Finite float64 of a shape, none below `least`."""
    given = np.asarray(array)
    if given.shape != shape or given.dtype.kind not in "fiub":
        got = f"{given.dtype} {given.shape}"
        raise UserError(f"{name} must be numbers of shape {shape}, got {got}")
    values = given.astype(np.float64)
    bad = ~(np.isfinite(values) & (values >= least))
    if bad.any():
        bound = "" if least == -np.inf else f" and >= {least:g}"
        raise UserError(f"{name} must be finite{bound}, got {values[bad].flat[0]}")
    return values


def laws(P0: Any, episodes: int, walkers: int) -> Array:
    """`P0` as contiguous float64 (E, m, K); the kernel looks at its rows."""
    given = np.asarray(P0)
    if given.ndim != 3 or given.shape[:2] != (episodes, walkers) or given.dtype.kind != "f":
        raise UserError(
            f"candidates() must give P0 as floats of shape ({episodes}, {walkers}, K), got "
            f"{given.dtype} {given.shape}"
        )
    if given.shape[2] == 0:
        raise UserError("candidates() gave no candidate to anyone: K is 0")
    return np.ascontiguousarray(given, np.float64)


def same_form(state: Any, like: State, what: str) -> State:
    """A state with the names, shapes and kinds of another; its floats are finite.

    Returns read-only views: a hook that wrote into the state would change the past.
    """
    if not isinstance(state, dict) or set(state) != set(like):
        got = sorted(state) if isinstance(state, dict) else type(state).__name__
        raise UserError(f"{what} must give a state with {sorted(like)}, got {got}")
    taken = {}
    for name, mine in like.items():
        if state[name] is mine:  # passed on, and looked at before
            taken[name] = mine
            continue
        array = np.asarray(state[name])
        if array.shape != mine.shape or not np.can_cast(array.dtype, mine.dtype, "same_kind"):
            raise UserError(
                f"{what} must give {name} as {mine.dtype} {mine.shape}, got {array.dtype} "
                f"{array.shape}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise UserError(f"{what} gave a {name} that is not finite")
        taken[name] = sealed(array.astype(mine.dtype, copy=False))
    return taken


def sealed(array: Array) -> Array:
    """A read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view


def box_of(observed: int | gymnasium.spaces.Box) -> gymnasium.spaces.Box:
    """The space of `x`, from its size or itself."""
    if isinstance(observed, gymnasium.spaces.Box):
        if observed.dtype != np.float32 or len(observed.shape) != 1:
            raise UserError(f"observed must be a flat Box of float32, got {observed}")
        return observed
    size = whole_number("observed", observed, 1)
    return gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
