"""`Claims`: claims of the Twitter15 rumour cascades, or a stand-in of the same shape."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from scipy.cluster.vq import kmeans2
from scipy.sparse.linalg import eigsh

from rapo.platforms.data import STAND_IN, data_path
from rapo.platforms.feed.entry import FEED
from rapo_core.checks import UserError

Array = npt.NDArray[Any]

NEIGHBOURS = 25
"""A claim is kept if it shares accounts with so many others: 1,395 of 1,490 do."""
HISTORY = 5
"""An account can be a user of the feed if it shared so many claims: 5,851 did."""
DIMENSIONS = 16
"""Dimensions of the co-audience embedding."""


@dataclass(frozen=True, eq=False)
class Claims:
    """N claims, how alike their audiences are, and the histories of accounts."""

    size: Array
    """(N,) accounts in the retweet tree."""
    false: Array
    """(N,) bool, labelled false by fact-checkers."""
    likeness: Array
    """(N, N) float32, shared accounts over the geometric mean of the sizes; diagonal 0."""
    points: Array
    """(N, DIMENSIONS) spectral embedding of the likeness, rows of length 1."""
    histories: Any
    """CSR (accounts, N): which account shared which claim."""
    source: str
    """`twitter15`, or `stand-in`."""

    @cached_property
    def nearest(self) -> Array:
        """(N, N) int32, the other claims by likeness of their audience, the nearest first."""
        return np.argsort(-self.likeness, axis=1, kind="stable").astype(np.int32)

    @lru_cache(maxsize=8)  # noqa: B019 - claims live as long as the process
    def clusters(self, count: int) -> Array:
        """(N,) int32 region of each claim: k-means of the embedding."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty cluster is a region that nothing enters
            labels = kmeans2(self.points, count, minit="++", seed=0, iter=50)[1]
        return np.asarray(labels, np.int32)


def claims_of(source: str) -> Claims:
    """Claims that the feed serves.

    Args:
        source: `real` or `stand-in`.

    Raises:
        UserError: the data are missing or damaged.
    """
    return (
        stand_in() if source == STAND_IN else _read(*(str(data_path(file)) for file in FEED.files))
    )


@lru_cache(maxsize=2)
def _read(cascades: str, trees: str) -> Claims:
    try:
        about = pd.read_csv(trees, usecols=["label", "n_users"])
        shares = pd.read_csv(cascades, usecols=["tree", "child_user"])
        tree, user = shares.drop_duplicates().to_numpy().T
        false = (about["label"] == "false").to_numpy()
        return _claims(tree, user, about["n_users"].to_numpy(), false, "twitter15")
    except (ValueError, IndexError, TypeError, OSError, EOFError) as error:
        raise UserError(f"{cascades} and {trees} do not hold the cascades: {error!r}") from error


@lru_cache(maxsize=2)
def stand_in(claims: int = 1395, accounts: int = 8000, seed: int = 0) -> Claims:
    """Generated claims: communities of accounts, each with its own share of false claims."""
    rng = np.random.default_rng(seed)
    groups = 40
    group = rng.integers(groups, size=claims)
    false = rng.random(claims) < rng.beta(0.7, 2.1, groups)[group]
    draw = np.exp(rng.normal(0, 0.8, claims))
    home = rng.integers(groups, size=accounts)
    tree, user = [], []
    for g in range(groups):
        law = draw * np.where(group == g, 12.0, 1.0)
        who = np.repeat(np.flatnonzero(home == g), 4 + rng.poisson(6, (home == g).sum()))
        tree.append(rng.choice(claims, len(who), p=law / law.sum()))
        user.append(who)
    pairs = np.unique(np.stack([np.concatenate(tree), np.concatenate(user)], axis=1), axis=0)
    return _claims(pairs[:, 0], pairs[:, 1], (200 * draw).astype(int) + 50, false, STAND_IN)


def _claims(tree: Array, user: Array, size: Array, false: Array, source: str) -> Claims:
    """Claims from pairs of an account (user) and a claim it shared (tree), without repeats."""
    _, user = np.unique(user, return_inverse=True)
    shared = sparse.csr_matrix((np.ones(len(tree), np.float32), (user, tree)))
    shared = shared[np.diff(shared.indptr) > 1]  # other accounts join no two claims
    common = (shared.T @ shared).tocsr()
    common.setdiag(0)
    common.eliminate_zeros()
    kept = np.flatnonzero(np.diff(common.indptr) >= NEIGHBOURS)
    size, false = size[kept], false[kept]
    likeness = common[kept][:, kept].toarray() / np.sqrt(np.outer(size, size))
    degree = likeness.sum(axis=1)
    _, points = eigsh(
        likeness / np.sqrt(np.outer(degree, degree)), DIMENSIONS, v0=np.ones(len(kept))
    )
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    histories = shared[np.diff(shared.indptr) >= HISTORY][:, kept].tocsr()
    return Claims(size, false, likeness.astype(np.float32), points, histories, source)
