"""What a platform proposes and whom it harms: `Candidates`, `Harmed`, and checks of both."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError, whole_number

Array = npt.NDArray[Any]
State = dict[str, Array]
"""The observable state of all episodes: arrays by name, the episode first, (E, ...) each."""
UNTOLD = np.zeros((0, 0, 0), np.bool_)
"""`harmful` of candidates for which a platform does not tell it."""


class Candidates(NamedTuple):
    """What every walker may choose from in a step."""

    P0: Array
    """(E, m, K) nominal probabilities of the candidates; rows sum to 1, pads have 0."""
    where: Array | None = None
    """Where a candidate leads: one region (E, m, K), several (E, m, K, L) with -1 for pads, or a
    point (E, m, K, d) of a scar field. None asks the platform's `region_map`."""
    harmful: Array | None = None
    """bool (E, m, K), candidates that lead into harm. None leaves the odds of harm undefined."""
    moving: Array | None = None
    """bool (E, m), walkers that choose now; None for all. Others need no candidates."""
    items: Any = None
    """Anything that `transition` needs of the candidates."""


class Harmed(NamedTuple):
    """Who is being harmed now. The harm arrives after the delay."""

    weight: Array
    """(E, m) bool or >= 0: how much of a harmed walker each walker is."""
    where: Array
    """Regions (E, m), or (E, m, L) with -1 for pads, which share the harm; or points (E, m, d).
    Read only where the weight is above 0."""


def region_array(name: str, regions: Any, dimensions: int) -> Array:
    """Contiguous region numbers; an axis of length 1 is added where `dimensions` lacks one."""
    array = np.asarray(regions)
    if array.dtype.kind not in "iu":
        raise UserError(f"{name} must hold region numbers, got {array.dtype} {array.shape}")
    if array.ndim == dimensions:
        array = array[..., None]
    kind = array.dtype if array.dtype in (np.int32, np.int64) else np.int64
    return np.ascontiguousarray(array, kind)


def bool_array(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    """A contiguous bool array of a shape."""
    array = np.asarray(values)
    if array.dtype != np.bool_ or array.shape != shape:
        raise UserError(f"{name} must be bool of shape {shape}, got {array.dtype} {array.shape}")
    return np.ascontiguousarray(array)


def number_array(
    name: str, values: Any, shape: tuple[int, ...], *, least: float = -np.inf
) -> Array:
    """Finite float64 of a shape, none below `least`."""
    array = np.asarray(values)
    if array.shape != shape or array.dtype.kind not in "fiub":
        got = f"{array.dtype} {array.shape}"
        raise UserError(f"{name} must be numbers of shape {shape}, got {got}")
    numbers = array.astype(np.float64)
    bad = ~(np.isfinite(numbers) & (numbers >= least))
    if bad.any():
        bound = "" if least == -np.inf else f" and >= {least:g}"
        raise UserError(f"{name} must be finite{bound}, got {numbers[bad].flat[0]}")
    return numbers


def point_array(what: str, points: Any, shape: tuple[int, ...]) -> Array:
    """Floats with one more axis than a shape."""
    array = np.asarray(points)
    if array.ndim != len(shape) + 1 or array.shape[:-1] != shape or array.dtype.kind != "f":
        raise UserError(
            f"{what} must give points of shape {shape} and one more axis, got {array.dtype} "
            f"{array.shape}"
        )
    return array


def checked_P0(P0: Any, episodes: int, walkers: int) -> Array:
    """`P0` as contiguous float64 (E, m, K); the kernel checks its rows."""
    array = np.asarray(P0)
    if array.ndim != 3 or array.shape[:2] != (episodes, walkers) or array.dtype.kind != "f":
        raise UserError(
            f"candidates() must give P0 as floats of shape ({episodes}, {walkers}, K), got "
            f"{array.dtype} {array.shape}"
        )
    if array.shape[2] == 0:
        raise UserError("candidates() gave no candidate to anyone: K is 0")
    return np.ascontiguousarray(array, np.float64)


def checked_state_of(state: Any, like: State, hook: str) -> State:
    """Read-only views of a hook's state, with the names, shapes and kinds of `like`.

    Floats must be finite. A hook that wrote into the views would change the past.
    """
    if not isinstance(state, dict) or set(state) != set(like):
        got = sorted(state) if isinstance(state, dict) else type(state).__name__
        raise UserError(f"{hook} must give a state with {sorted(like)}, got {got}")
    taken = {}
    for name, mine in like.items():
        if state[name] is mine:  # passed on by the hook, and checked before
            taken[name] = mine
            continue
        array = np.asarray(state[name])
        if array.shape != mine.shape or not np.can_cast(array.dtype, mine.dtype, "same_kind"):
            raise UserError(
                f"{hook} must give {name} as {mine.dtype} {mine.shape}, got {array.dtype} "
                f"{array.shape}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise UserError(f"{hook} gave a {name} that is not finite")
        taken[name] = read_only(array.astype(mine.dtype, copy=False))
    return taken


def read_only(array: Array) -> Array:
    """A read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view


def box_of(observed: int | gymnasium.spaces.Box) -> gymnasium.spaces.Box:
    """The space of `x` from the size of `x`, or a checked space."""
    if isinstance(observed, gymnasium.spaces.Box):
        if observed.dtype != np.float32 or len(observed.shape) != 1:
            raise UserError(f"observed must be a flat Box of float32, got {observed}")
        return observed
    size = whole_number("observed", observed, 1)
    return gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
