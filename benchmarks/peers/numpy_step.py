"""The step in NumPy, all episodes at once: what a careful author writes without a compiler.

Arrays are (n, B), so that a node's row is contiguous over the episodes. The product over
in-edges is the costly part. Measured for 250 nodes and 64 episodes: `multiply.reduceat` over the
gathered edges 210 us, one pass per in-edge rank 90 us, a dense matrix product of the logarithms
115 us, the same with a SciPy sparse matrix 37 us, `multiply.at` over the edges of active
nodes only 38 us while 4% of the nodes are active and 200 us at 30%. The sparse product is used:
it is the fastest at every activity, and persistence is its diagonal, for free.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from benchmarks.problem import Problem
from rapo.cascade.stats import STATS

_LOG_CERTAIN = -80.0
"""Stands for log(1 - 1): -inf times an inactive source is NaN; exp(-80) is as good as 0."""


class NumpyStep:
    """`step(actions)` advances B episodes and returns (len(STATS), B) float32."""

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        self.problem = p = problem
        columns = np.arange(p.episodes)
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log1p(-p.prob), _LOG_CERTAIN)
        spread = sparse.csr_array((logs, p.sources, p.indptr), shape=(p.n, p.n))
        stay = sparse.diags_array(np.full(p.n, np.log1p(-p.persistence)))
        self.log_miss = sparse.csr_array(spread + stay, dtype=np.float32)
        self.members = p.members
        ones = np.ones(len(self.members), np.float32)
        self.credit = sparse.csr_array(
            (ones, (p.region[self.members], self.members)), shape=(p.regions, p.n)
        )
        self.features = p.features
        self.columns = columns
        self.seed_at = (p.support.astype(np.int64) * p.episodes + columns).ravel()
        self.seed_psi_at = p.region[p.support].astype(np.int64) * p.episodes + columns
        self.bits = np.random.SFC64(seed)
        self.reset()

    def reset(self) -> None:
        """Nothing active, no harm under way, both fields 0."""
        p = self.problem
        self.active = np.zeros((p.n, p.episodes), np.float32)
        self.G = np.zeros((p.regions, p.episodes), np.float32)
        self.H = np.zeros_like(self.G)
        self.psi = np.ones((p.regions + 1, p.episodes), np.float32)  # last row: no live region
        self.due = np.zeros((p.delay, *self.G.shape), np.float32)
        self.t = 0

    def step(self, actions: npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
        """One step of every episode; `actions` is (B,) in {0, 1, 2}."""
        p, one = self.problem, np.float32(1)
        out = np.empty((len(STATS), p.episodes), np.float32)
        psi = self._conductance()
        b = p.inject[actions, :, self.columns].T  # (k, B)
        blocked = one - b
        miss = self.log_miss @ self.active
        np.exp(miss, out=miss)
        miss.reshape(-1)[self.seed_at] *= blocked.ravel()
        entry = np.subtract(one, miss)
        inside = np.take(miss, self.members, axis=0)
        np.sum(one - inside, axis=0, out=out[10])
        np.prod(inside, axis=0, out=out[12])
        entry *= np.take(psi, p.region, axis=0)
        miss += entry  # sum of the two outcomes' weights: comparing needs no division
        np.sum(np.take(entry, self.members, axis=0), axis=0, out=out[11])
        np.prod(np.take(miss, self.members, axis=0), axis=0, out=out[13])
        miss *= self._draw()
        entry *= np.float32(2.0**24)
        after = np.less(miss, entry).astype(np.float32)

        passed = b * np.take(psi, self.seed_psi_at)
        out[5] = (passed / (passed + blocked)).sum(axis=0)
        out[6:10] = self._remember()
        self._describe(self.features @ after, out)
        self.active = after
        self.t += 1
        return out

    def _draw(self) -> npt.NDArray[np.float32]:
        """(n, B) whole numbers in [0, 2^24), uniform, two from each 64-bit word.

        `Generator.random(dtype=float32)` draws one at a time and needs twice as long.
        """
        count = self.active.size
        bits = self.bits.random_raw((count + 1) // 2).view(np.uint32)[:count]
        bits >>= np.uint32(8)
        # int32 because signed integers become float32 in one instruction, unsigned ones do not
        return bits.view(np.int32).astype(np.float32).reshape(self.active.shape)

    def _conductance(self) -> npt.NDArray[np.float32]:
        """(R + 1, B) psi from the fields; the last row stays 1."""
        f, psi = self.problem.params, self.psi[:-1]
        np.multiply(self.G, np.float32(-f.w_G), out=psi)
        psi -= np.float32(f.w_H) * self.H
        np.exp(psi, out=psi)
        np.maximum(psi, np.float32(f.psi_min), out=psi)
        return self.psi

    def _remember(self) -> tuple[npt.NDArray[np.float32], ...]:
        """Update delay buffer and fields; harm, sum of G before, growth and sum of H after."""
        f = self.problem.params
        slot = self.t % self.problem.delay
        share = self.due[slot].copy()
        self.due[slot] = self.credit @ self.active  # of A_t, due D steps from now
        count = share.sum(axis=0)
        harm = np.minimum(np.float32(0.1) * count, np.float32(1))
        share *= np.float32(f.alpha) * harm / np.maximum(count, np.float32(1))
        trace = self.G.sum(axis=0)
        growth = np.maximum(self.G - np.float32(f.tau), np.float32(0))
        growth *= np.float32(f.eta)
        if f.delta < 1:
            growth -= np.float32(1 - f.delta) * self.H
        self.H += growth
        self.G *= np.float32(1 - f.lam)
        self.G += share
        return harm, trace, growth.sum(axis=0), self.H.sum(axis=0)

    @staticmethod
    def _describe(sums: npt.NDArray[np.float32], out: npt.NDArray[np.float32]) -> None:
        """Reach, sensitive, centroid and spread from the five sums over active nodes."""
        out[:2] = sums[:2]
        mean = sums[2:] / np.maximum(sums[0], np.float32(1))
        out[2:4] = mean[:2] + np.float32(0.5)
        variance = mean[2] - mean[0] * mean[0] - mean[1] * mean[1]
        out[4] = np.sqrt(np.maximum(variance, np.float32(0)))
