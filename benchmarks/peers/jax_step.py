"""The step in JAX: one jitted `lax.scan` over the steps, all episodes at once, one CPU thread.

Arrays are (n, B). Choices, measured for 250 nodes and 64 episodes:
- product over in-edges: dense matrix product of the logarithms 126 us, sparse (BCOO) 30 us,
  `segment_prod` 22 us, padded in-neighbours 15-19 us, one block per in-degree without padding
  9 us. The last is used; nodes are renumbered by in-degree, so the blocks are laid end to end.
- delay buffer: a ring updated in the carry is copied whole at every step (80 us for the step);
  as input and output of an inner scan over D steps it is not (40 us). `steps` is a multiple of D.
- sums over active nodes: reductions make XLA compute the new active set once for each (160 us);
  a matrix product does not (80 us, before the change above).
- draws: threefry 55 us, XLA's own generator ("rbg") 350 us, a counter hash written in JAX 6 us.
  Both threefry, from which a JAX program draws unless told otherwise, and the hash are offered.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.problem import Problem

_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@lru_cache(maxsize=1)
def import_jax() -> Any:
    """Import jax with a thread pool of one.

    The flags count only before the first import and not for large element-wise kernels; the size
    of the pool follows from the processors the process may use when the pool is made, so
    the process is confined to one for that moment.
    """
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_ONE_THREAD}".strip()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    if allowed:
        os.sched_setaffinity(0, {min(allowed)})
    try:
        import jax

        jax.devices()  # makes the pool
    finally:
        if allowed:
            os.sched_setaffinity(0, allowed)
    return jax


def hash_uniforms(jax: Any, n: int, episodes: int) -> Callable[[Any], Any]:
    """A function t -> (n, B) uniforms: a 32-bit hash of (episode, step, node)."""
    jnp, u32 = jax.numpy, np.uint32
    node = (np.arange(n, dtype=u32) * u32(0x9E3779B9))[:, None]
    episode = np.arange(episodes, dtype=u32) * u32(0x85EBCA6B)

    def mix(x: Any) -> Any:
        x = (x ^ (x >> 16)) * u32(0x85EBCA6B)
        x = (x ^ (x >> 13)) * u32(0xC2B2AE35)
        return x ^ (x >> 16)

    def draw(t: Any) -> Any:
        k0 = mix(episode ^ mix(t.astype(jnp.uint32)))
        k1 = mix(k0 + u32(0x9E3779B9))
        x = k0 ^ node
        x = (x ^ (x >> 16)) * u32(0x21F0AAAD)
        x = (x ^ (x >> 15)) + k1
        x = x * u32(0x735A2D97)
        x = x ^ (x >> 15)
        # through int32: signed integers become float32 in one instruction, unsigned ones do not
        return (x >> 8).astype(jnp.int32).astype(jnp.float32) * np.float32(2.0**-24)

    return draw


def threefry_uniforms(jax: Any, n: int, episodes: int) -> Callable[[Any], Any]:
    """A function t -> (n, B) uniforms: JAX's default generator."""
    key = jax.random.key(0)
    return lambda t: jax.random.uniform(jax.random.fold_in(key, t), (n, episodes))


UNIFORMS = {"hash": hash_uniforms, "threefry": threefry_uniforms}


class JaxStep:
    """`run(actions)` advances B episodes by `steps` steps: (steps, len(STATS), B) float32."""

    def __init__(self, problem: Problem, steps: int, uniforms: str = "hash") -> None:
        if steps < 1 or steps % problem.delay:
            raise ValueError(f"steps must be a multiple of the delay {problem.delay}, got {steps}")
        self.jax = import_jax()
        self.problem, self.steps = problem, steps
        degree = np.diff(problem.indptr)
        self.order = np.argsort(degree, kind="stable")
        self.rank = np.empty(problem.n, np.int32)
        self.rank[self.order] = np.arange(problem.n)
        self.blocks = self._blocks(degree[self.order])
        draw = UNIFORMS[uniforms](self.jax, problem.n, problem.episodes)
        self._run = self.jax.jit(self._program(draw))
        self.reset()

    def _blocks(self, degree: npt.NDArray[Any]) -> list[tuple[npt.NDArray[Any], Any]]:
        """(sources (m, d), prob (m, d)) of the m nodes of each in-degree d, renumbered."""
        p = self.problem
        blocks = []
        for d in np.unique(degree):
            edges = p.indptr[:-1][self.order[degree == d], None] + np.arange(d)
            blocks.append((self.rank[p.sources[edges]], p.prob[edges]))
        return blocks

    def _credit(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Sensitive nodes of each live region, padded: (R, m) indices and a 0/1 mask."""
        p = self.problem
        nodes = p.members[np.argsort(p.region[p.members], kind="stable")]
        region = p.region[nodes]
        place = np.arange(len(nodes)) - np.searchsorted(region, region)
        index = np.zeros((p.regions, int(place.max()) + 1), np.int32)
        mask = np.zeros(index.shape, np.float32)
        index[region, place], mask[region, place] = self.rank[nodes], 1
        return index, mask

    def reset(self) -> None:
        """Nothing active, no harm under way, both fields 0."""
        p, jnp = self.problem, self.jax.numpy
        field = jnp.zeros((p.regions, p.episodes), jnp.float32)
        due = jnp.zeros((p.delay, *field.shape), jnp.float32)
        active = jnp.zeros((p.n, p.episodes), jnp.float32)
        self.state = ((active, field, field, jnp.int32(0)), due)

    def run(self, actions: npt.NDArray[np.integer]) -> Any:
        """`steps` steps of every episode; `actions` is (B,) in {0, 1, 2}. Waits for the result."""
        self.state, trace = self._run(self.state, actions)
        return self.jax.block_until_ready(trace)

    def _program(self, draw: Callable[[Any], Any]) -> Callable[..., Any]:
        p, f, lax, jnp = self.problem, self.problem.params, self.jax.lax, self.jax.numpy
        one, half = np.float32(1), np.float32(0.5)
        columns = np.arange(p.episodes)
        region, features = p.region[self.order], p.features[:, self.order]
        members = self.rank[p.members]
        dense = np.zeros((3, p.n, p.episodes), np.float32)
        dense[:, self.rank[p.support], columns] = p.inject
        seed_region = p.region[p.support]
        credited, mask = self._credit()

        def step(state: Any, due: Any, inject: Any, b: Any) -> tuple[Any, Any]:
            active, G, H, t = state
            psi = jnp.maximum(jnp.exp(-(f.w_G * G + f.w_H * H)), np.float32(f.psi_min))
            psi = jnp.concatenate([psi, jnp.ones((1, p.episodes), jnp.float32)])
            parts = []
            for sources, prob in self.blocks:
                m = jnp.ones((len(sources), p.episodes), jnp.float32)
                for k in range(sources.shape[1]):
                    m = m * (one - prob[:, k, None] * active[sources[:, k]])
                parts.append(m)
            miss = jnp.concatenate(parts) * (one - inject) * (one - p.persistence * active)
            # without the barrier every statistic below computes the whole product again
            miss = lax.optimization_barrier(miss)
            entry = (one - miss) * psi[region]
            after = (draw(t) * (entry + miss) < entry).astype(jnp.float32)

            inside, passed = miss[members], entry[members]
            stay = inside.prod(axis=0)
            partition = (passed + inside).prod(axis=0)
            served = b * psi[seed_region, columns]
            count = due.sum(axis=0)
            harm = jnp.minimum(np.float32(0.1) * count, one)
            growth = f.eta * jnp.maximum(G - f.tau, 0) - (1 - f.delta) * H
            trace = (harm, G.sum(axis=0), growth.sum(axis=0), (H + growth).sum(axis=0))
            G = (1 - f.lam) * G + due * (f.alpha * harm / jnp.maximum(count, one))
            now = sum(active[credited[:, k]] * mask[:, k, None] for k in range(mask.shape[1]))

            reach, sensitive, x, y, squares = features @ after
            size = jnp.maximum(reach, one)
            x, y = x / size, y / size
            spread = jnp.sqrt(jnp.maximum(squares / size - x * x - y * y, 0))
            served = (served / (served + one - b)).sum(axis=0)
            entries = ((one - inside).sum(axis=0), passed.sum(axis=0), stay, partition)
            stats = (reach, sensitive, x + half, y + half, spread, served, *trace, *entries)
            return (after, G, H + growth, t + 1), (now, jnp.stack(stats))

        def run(state: Any, actions: Any) -> Any:
            # actions are fixed during one call: the choice is made once, outside the loop
            chosen = actions[None, None, :]
            inject = jnp.take_along_axis(jnp.asarray(dense), chosen, axis=0)[0]
            b = jnp.take_along_axis(jnp.asarray(p.inject), chosen, axis=0)[0]

            def lap(carry: Any, _: Any) -> Any:
                inner, due = carry
                inner, (due, stats) = lax.scan(lambda s, d: step(s, d, inject, b), inner, due)
                return (inner, due), stats

            state, trace = lax.scan(lap, state, None, length=self.steps // p.delay)
            return state, trace.reshape(-1, *trace.shape[2:])

        return run
