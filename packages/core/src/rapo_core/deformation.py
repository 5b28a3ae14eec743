"""The deformation: conductance, and what it does to categorical and to product kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError
from rapo_core.fields import conductance_into
from rapo_core.jit import inlined, kernel
from rapo_core.params import FieldParams

Array = npt.NDArray[np.floating[Any]]

SUM_TOLERANCE = 1e-6
"""How far a nominal distribution may miss a sum of 1 (float32 rows need this much)."""

_BLOCK = 128
"""Terms that are summed before their sum is added to the others; a multiple of 4."""


def conductance(G: npt.ArrayLike, H: npt.ArrayLike, params: FieldParams) -> Array:
    """`psi = clip(exp(-w_G G - w_H H), psi_min, 1)`, elementwise.

    Args:
        G: trace >= 0, any shape.
        H: scar >= 0, the shape of `G`.
        params: weights and the lower bound.

    Returns:
        `psi` in [psi_min, 1], float32 if both fields are, else float64.
    """
    g, h = np.asarray(G), np.asarray(H)
    if g.shape != h.shape:
        raise UserError(f"G and H must have one shape, got {g.shape} and {h.shape}")
    kind = np.float32 if g.dtype == h.dtype == np.float32 else np.float64
    g, h = np.ascontiguousarray(g, kind), np.ascontiguousarray(h, kind)
    for name, field in (("G", g), ("H", h)):
        if not np.all((field >= 0) & np.isfinite(field)):
            bad = field[~((field >= 0) & np.isfinite(field))].flat[0]
            raise UserError(f"{name} must be finite and >= 0, got {bad}")
    psi = np.empty_like(g)
    conductance_into(
        g.ravel(), h.ravel(), kind(params.w_G), kind(params.w_H), kind(params.psi_min), psi.ravel()
    )
    return psi.reshape(np.shape(G))


def reweight(p0: npt.ArrayLike, psi: npt.ArrayLike) -> Array:
    """Deform a categorical kernel: `P = P0 psi / Z` over the last axis.

    Args:
        p0: nominal probabilities >= 0 that sum to 1 over the last axis.
        psi: conductance of each destination in [0, 1], broadcastable to `p0`.

    Returns:
        Float64 probabilities of the shape of `p0`; each lies in [psi_min p0, p0 / psi_min].

    >>> reweight([0.5, 0.5], [1.0, 0.25])
    array([0.8, 0.2])
    """
    p = np.asarray(p0, np.float64)
    s = _conductances(psi)
    if p.ndim == 0:
        raise UserError(f"p0 must be a distribution over the last axis, got the scalar {p}")
    _broadcasts("p0", p, s)
    if not np.all(p >= 0):  # also catches NaN
        raise UserError(f"p0 must be >= 0, got {p[~(p >= 0)].flat[0]}")
    total = p.sum(axis=-1)
    if not np.all(np.abs(total - 1) <= SUM_TOLERANCE):
        bad = np.atleast_1d(total)[np.atleast_1d(~(np.abs(total - 1) <= SUM_TOLERANCE))][0]
        raise UserError(f"p0 must sum to 1 over the last axis, got {bad}; divide it by its sum")
    weighted = p * s
    Z = weighted.sum(axis=-1, keepdims=True)
    if not np.all(Z > 0):
        raise UserError("psi is 0 on every reachable destination; keep psi_min > 0")
    return np.asarray(weighted / Z)


@inlined
def whole_sum(terms: Any) -> Any:
    """The sum of (n,) in blocks, as a plain sum of 10^5 terms loses 12th digits.

    Four sums side by side: none waits for another.
    """
    whole, end = 0.0, terms.size - terms.size % 4
    for start in range(0, end, _BLOCK):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for i in range(start, min(start + _BLOCK, end), 4):
            a += terms[i]
            b += terms[i + 1]
            c += terms[i + 2]
            d += terms[i + 3]
        whole += (a + b) + (c + d)
    for i in range(end, terms.size):
        whole += terms[i]
    return whole


@kernel
def reweight_into(p0: Any, psi: Any, out: Any) -> tuple[float, float]:
    """`reweight` of one distribution without its checks, for callers that count microseconds.

    Args:
        p0: weights >= 0, float64 (n,); they are divided by their sum.
        psi: conductance in (0, 1], float64 (n,).
        out: takes `p0 psi / Z`, float64 (n,).

    Returns:
        The sum of `p0`, and the mass that `psi` lets through, `Z = sum p0 psi / sum p0`. Both are
        NaN, and `out` is not to be used, if a weight is negative or not finite or all are 0.
    """
    bad = 0
    for i in range(p0.size):  # to the end: a loop that may leave takes one at a time
        bad += not ((p0[i] >= 0) & (p0[i] < np.inf))
        out[i] = p0[i] * psi[i]
    total, passed = whole_sum(p0), whole_sum(out)
    if bad > 0 or not 0 < total < np.inf or not passed > 0:
        return np.nan, np.nan
    for i in range(p0.size):
        out[i] /= passed
    return total, passed / total


def gate_odds(q: npt.ArrayLike, psi: npt.ArrayLike) -> Array:
    """Deform a product kernel: `q' = q psi / (q psi + 1 - q)`, elementwise.

    The odds `q'/(1-q')` are exactly `psi` times the odds of `q`.

    Args:
        q: nominal activation probabilities in [0, 1].
        psi: conductance in [0, 1], broadcastable to `q`.

    >>> gate_odds(0.5, 0.25)
    array(0.2)
    """
    p = np.asarray(q, np.float64)
    s = _conductances(psi)
    _broadcasts("q", p, s)
    if not np.all((p >= 0) & (p <= 1)):
        raise UserError(f"q must be in [0, 1], got {p[~((p >= 0) & (p <= 1))].flat[0]}")
    passed = p * s
    denominator = passed + (1 - p)
    if not np.all(denominator > 0):
        raise UserError("q = 1 with psi = 0 has no law; keep psi_min > 0")
    return np.asarray(passed / denominator)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where the deformation applies; elsewhere psi is 1.

    `full` everywhere, `off` nowhere, `topk` on the k most probable destinations under `P0`,
    `local` on a fixed share of the regions that can be scarred.
    """

    kind: str = "full"
    k: int = 0
    share: float = 0.5

    def __post_init__(self) -> None:
        whole = isinstance(self.k, int) and not isinstance(self.k, bool)
        share = isinstance(self.share, int | float) and 0 < self.share <= 1
        known = {"full": True, "off": True, "topk": whole and self.k >= 1, "local": share}
        if not known.get(self.kind, False):
            raise UserError(
                f"deformation must be full, off, topk:<k> or local[:<share>], got {self.kind!r} "
                f"with k = {self.k}, share = {self.share}"
            )

    @classmethod
    def parse(cls, text: str | Scope) -> Scope:
        """Read `full`, `off`, `topk:<k>`, `local` (half the regions) or `local:<share>`.

        >>> Scope.parse("topk:8")
        Scope(kind='topk', k=8, share=0.5)
        """
        if isinstance(text, Scope):
            return text
        kind, _, value = str(text).partition(":")
        try:
            if kind in ("full", "off") and text == kind:
                return cls(kind)
            if kind == "topk" and int(value) >= 1:
                return cls(kind, k=int(value))
            if kind == "local" and (not value or 0 < float(value) <= 1):
                return cls(kind, share=float(value or 0.5))
        except ValueError:
            pass  # a malformed number gets the same message as an unknown word
        raise UserError(
            f"deformation must be full, off, topk:<k> or local[:<share>], got {text!r}; k is a "
            "whole number >= 1, the share is in (0, 1]"
        )

    def gated_regions(self, count: int) -> npt.NDArray[np.bool_]:
        """(count,) which of the regions that can be scarred may be deformed: all, or a share.

        >>> Scope("local", share=0.28).gated_regions(25).sum()
        np.int64(7)
        """
        gated = np.ones(count, np.bool_)
        if self.kind == "local":
            order = np.random.default_rng(0).permutation(count)
            gated[order[int(np.ceil(self.share * count - 1e-9)) :]] = False  # 0.28 x 25 is 7
        return gated

    def __str__(self) -> str:
        return {"topk": f"topk:{self.k}", "local": f"local:{self.share}"}.get(self.kind, self.kind)


def within_scope(
    psi: npt.ArrayLike,
    p0: npt.ArrayLike,
    scope: Scope | str,
    gated_regions: npt.ArrayLike | None = None,
) -> Array:
    """The conductance that a scope lets through: `psi` inside, 1 outside.

    Args:
        psi: conductance per destination, (..., n).
        p0: nominal probability of each destination, (..., n); decides `topk`. Ties go to the
            destination with the smaller index.
        scope: where the deformation applies.
        gated_regions: bool (n,), the destinations of a `local` scope.
    """
    scope = Scope.parse(scope)
    s, p = np.broadcast_arrays(_conductances(psi), np.asarray(p0))
    if scope.kind == "full":
        return s.copy()
    if scope.kind == "off":
        return np.ones_like(s)
    if scope.kind == "local":
        if gated_regions is None:
            raise UserError("a local scope needs `gated_regions`, the destinations it covers")
        inside = np.asarray(gated_regions)
        if inside.dtype != np.bool_ or inside.shape != s.shape[-1:]:
            raise UserError(
                f"gated_regions must be bool of shape {s.shape[-1:]}, got {inside.dtype} "
                f"{inside.shape}"
            )
        return np.where(inside, s, s.dtype.type(1))
    if np.isnan(p).any():
        raise UserError("p0 must hold probabilities to be ranked, got nan")
    rank = np.argsort(np.argsort(-p, axis=-1, kind="stable"), axis=-1, kind="stable")
    return np.where(rank < scope.k, s, s.dtype.type(1))


def _conductances(psi: npt.ArrayLike) -> Array:
    s = np.asarray(psi)
    if s.dtype != np.float32:
        s = s.astype(np.float64)
    if not np.all((s >= 0) & (s <= 1)):
        raise UserError(f"psi must be in [0, 1], got {s[~((s >= 0) & (s <= 1))].flat[0]}")
    return s


def _broadcasts(name: str, p: Array, psi: Array) -> None:
    try:
        fits = np.broadcast_shapes(p.shape, psi.shape) == p.shape
    except ValueError:
        fits = False
    if not fits:
        raise UserError(f"psi of shape {psi.shape} does not fit {name} of shape {p.shape}")
