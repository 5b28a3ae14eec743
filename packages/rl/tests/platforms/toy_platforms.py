"""Small platforms for tests: a feed by regions, routes over several, units on a line of points."""

import numpy as np

from rapo.platforms import BatchPlatform, Candidates

PLACES, K, WALKERS, REGIONS, STIMULI = 40, 5, 30, 10, 3


class Feed(BatchPlatform):
    """Users that go from item to item; items 0..7 are harmful, and one is pushed by the stimulus.

    The action is how hard it is pushed. A user leaves by chance and comes back while a stimulus is
    on, so that the feed drains in Decay.
    """

    def __init__(self, episodes=1, *, seed=0, **options):
        rng = np.random.default_rng(seed)
        self.next = np.stack([rng.choice(PLACES, K, replace=False) for _ in range(PLACES)])
        self.law = rng.dirichlet(np.ones(K), PLACES)
        self.harmful = np.arange(PLACES) < 8
        self.region = np.arange(PLACES) % REGIONS
        kept = {"walkers": WALKERS, "actions": 3, "stimuli": STIMULI, "observed": 3, "delay": 10}
        memory = {} if "scars" in options else {"regions": REGIONS}
        super().__init__(episodes, **{**kept, **memory, **options})

    def rest(self, episodes):
        return {"at": np.full((episodes, self.walkers), -1)}

    def arrive(self, state):
        at, on = state["at"], self.stimulus_on[:, None]
        left = self.draws(1) < 0.1
        comes = (left | (at < 0)) & (on > 0)
        return {"at": np.where(comes, on - 1, np.where(left, -1, at))}

    def candidates(self, state, action):
        at = state["at"]
        law = self.law[at]
        pushed = np.arange(K) == 0
        hard = 0.2 * action[:, None, None]
        items = self.next[at]
        return Candidates(
            (1 - hard) * law + hard * pushed, self.region[items], self.harmful[items], at >= 0
        )

    def transition(self, state, action, choice, found):
        at = state["at"]
        moved = np.take_along_axis(self.next[at], choice[..., None].clip(0), 2)[..., 0]
        return {"at": np.where(at >= 0, moved, -1)}, (at >= 0).mean(axis=1)

    def harmed(self, state):
        at = state["at"]
        return (at >= 0) & self.harmful[at], np.where(at >= 0, self.region[at], -1)

    def reach(self, state):
        return (state["at"] >= 0).sum(axis=1)

    def observation(self, state, clock):
        at = state["at"]
        here = (at >= 0).mean(axis=1)
        return np.stack([here, ((at >= 0) * at).mean(axis=1) / PLACES, clock / 100], axis=1)


class Routes(Feed):
    """The same with candidates that cross two or three regions."""

    def candidates(self, state, action):
        found = super().candidates(state, action)
        several = np.stack([found.where, (found.where + 3) % REGIONS, found.where // 2], axis=-1)
        several[..., 2] = np.where(found.where % 2, several[..., 2], -1)
        return found._replace(where=several)

    def harmed(self, state):
        """Harm on a route counts for both of its regions."""
        weight, region = super().harmed(state)
        other = np.where((region >= 0) & (region % 2 == 0), (region + 3) % REGIONS, -1)
        return weight, np.stack([region, other], axis=-1)


class Mapped(Feed):
    """The same, its regions told by a map of (state, action, candidate)."""

    def candidates(self, state, action):
        found = super().candidates(state, action)
        return found._replace(where=None)

    def region_map(self, state, action, candidate):
        at = np.broadcast_to(state["at"][..., None], candidate.shape)
        return self.region[self.next[at, candidate]]


class Line(Feed):
    """The same with items as points of [0, 1] and a scar field instead of regions."""

    def candidates(self, state, action):
        found = super().candidates(state, action)
        return found._replace(where=(self.next[state["at"]] / PLACES)[..., None])

    def harmed(self, state):
        at = state["at"]
        return (at >= 0) & self.harmful[at], (at.clip(0) / PLACES)[..., None]


class Bins:
    """A scar field: `HarmMemory` on equal bins of [0, 1]."""

    def __init__(self, bins=PLACES, *, params, batch, delay):
        from rapo import HarmMemory

        self.bins = bins
        self.memory = HarmMemory(bins, params, batch=batch, delay=delay)

    def _bin(self, points):
        return np.minimum(
            (np.asarray(points)[..., 0] * self.bins + 1e-9).astype(int), self.bins - 1
        )

    def conductance(self, points):
        return np.take_along_axis(self.memory.conductance(), self._bin(points), 1)

    def advance(self, points, affected):
        counts = np.zeros(self.memory.G.shape)
        np.add.at(counts, (np.arange(len(counts))[:, None], self._bin(points)), affected)
        return self.memory.advance(counts)

    def reset(self, episodes=None):
        self.memory.reset(episodes)

    def snapshot(self):
        return self.memory.snapshot()

    def restore(self, state):
        self.memory.restore(state)
