"""`Claims`: what is served, from the Twitter15 rumour cascades or a stand-in of the same shape."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from scipy.cluster.vq import kmeans2
from scipy.sparse.linalg import eigsh

Array = npt.NDArray[Any]

SOURCES = ("auto", "real", "stand-in")
FOLDER = "twitter15_rumor_cascades"
NEIGHBOURS = 25
"""A claim is kept if it shares accounts with that many others: 1,395 of 1,490."""
HISTORY = 5
"""An account can be a user of the feed if it shared that many claims: 5,851 can."""
DIMENSIONS = 16
"""Of the co-audience embedding."""


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
    """CSR (accounts, N) of who shared what."""
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
            warnings.simplefilter("ignore")  # of an empty cluster, a region that nothing enters
            found = kmeans2(self.points, count, minit="++", seed=0, iter=50)[1]
        return np.asarray(found, np.int32)


@lru_cache(maxsize=2)
def claims_of(folder: str | None = None) -> Claims:
    """The claims in a folder of data sets.

    Args:
        folder: default `RAPO_DATA`, else `../shared/data` of a checkout. If it is named, the data
            must be there; if not, a stand-in is generated in its place, with a warning.
    """
    named = folder or os.environ.get("RAPO_DATA")
    root = Path(named) if named else Path(__file__).resolve().parents[5] / "shared" / "data"
    home = root / FOLDER
    if (home / "cascades.csv.gz").exists() and (home / "trees.csv.gz").exists():
        trees = pd.read_csv(home / "trees.csv.gz")
        shares = pd.read_csv(home / "cascades.csv.gz", usecols=["tree", "child_user"])
        tree, user = shares.drop_duplicates().to_numpy().T
        false = (trees["label"] == "false").to_numpy()
        return _claims(tree, user, trees["n_users"].to_numpy(), false, "twitter15")
    if named:
        raise ValueError(
            f"no {FOLDER}/cascades.csv.gz and trees.csv.gz in {root}; put the data there, or unset "
            "RAPO_DATA for a generated stand-in"
        )
    warnings.warn(
        f"{home} is absent: rapo/Feed-v0 serves generated claims (stand-in). Set RAPO_DATA to the "
        "folder of the data sets for the real ones.",
        stacklevel=2,
    )
    return stand_in()


def claims_from(data: str) -> Claims:
    """The claims by their source.

    Args:
        data: `real`, `stand-in`, or `auto`: stand-ins with a warning where there are no data.
    """
    if data not in SOURCES:
        raise ValueError(f"data must be one of {SOURCES}, got {data!r}")
    if data == "stand-in":
        return stand_in()
    if data == "auto":
        return claims_of()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is refused instead
        found = claims_of()
    if found.source == "stand-in":
        raise ValueError(f"there is no {FOLDER}; set RAPO_DATA to the folder of the data sets")
    return found


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
    return _claims(pairs[:, 0], pairs[:, 1], (200 * draw).astype(int) + 50, false, "stand-in")


def _claims(tree: Array, user: Array, size: Array, false: Array, source: str) -> Claims:
    """From who (user) shared what (tree), pairs without repeats."""
    _, user = np.unique(user, return_inverse=True)
    shared = sparse.csr_matrix((np.ones(len(tree), np.float32), (user, tree)))
    shared = shared[np.diff(shared.indptr) > 1]  # the others join nothing to nothing
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
