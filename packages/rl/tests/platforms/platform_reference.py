"""One step of a platform, walker by walker, from the core's own functions: slow and obvious."""

import numpy as np

from rapo import HarmMemory
from rapo.cascade.draws import uniform
from rapo.platforms import Candidates, Harmed
from rapo_core.deformation import conductance, reweight, within_scope
from rapo_core.fields import HARM_PER_NODE


class Reference:
    """Follows a platform of one episode by regions: same hooks, draws and order of a step."""

    def __init__(self, platform, regions, saturation=0.2):
        self.platform, self.regions = platform, regions
        delay = platform.memory.harm.delay
        self.memory = HarmMemory(regions, platform.params, delay=delay)
        self.state = platform.rest(1)
        self.per_walker = 1 / (HARM_PER_NODE * saturation * platform.walkers)

    def psi_of(self, where):
        """Psi of one candidate that crosses regions `where`."""
        psi = conductance(self.memory.G, self.memory.H, self.memory.params)
        crossed = [psi[r] for r in np.atleast_1d(where) if r >= 0]
        return float(np.clip(np.prod(crossed), self.memory.params.psi_min, 1))

    def step(self, action, *, deformed=True):
        """Choices (m,), and what `info` tells of the step."""
        p = self.platform
        acts = np.array([action])
        before = p.arrive(self.state)
        found = p.candidates(before, acts)
        found = found if isinstance(found, Candidates) else Candidates(found)
        where = found.where
        if where is None:
            numbered = np.broadcast_to(np.arange(found.P0.shape[2]), found.P0.shape)
            where = p.region_map(before, acts, numbered)
        choice = np.full(p.walkers, -1)
        told = dict.fromkeys(("served", "entry_nominal", "entry_deformed"), 0.0)
        weighted = mass = gated = 0.0
        for w in range(p.walkers):
            if found.moving is not None and not found.moving[0, w]:
                continue
            p0, harmful = found.P0[0, w], found.harmful[0, w]
            psi = np.array([self.psi_of(r) for r in where[0, w]])
            if not deformed:
                psi = np.ones_like(psi)
            elif p.scope.kind == "topk":
                psi = within_scope(psi, p0, p.scope)
            law = reweight(p0, psi)
            assert abs(law.sum() - 1) < 1e-12
            u = float(uniform(p.keys[0], p.clock[0], w))
            choice[w] = int(np.searchsorted(law.cumsum(), u, side="right"))
            inside, entered = p0[harmful].sum(), law[harmful].sum()
            told["served"] += (p0 * psi).sum()
            told["entry_nominal"] += inside
            told["entry_deformed"] += entered
            gated += ((psi < 1) & (p0 > 0)).any()
            if 0 < inside < 1 - 1e-12:
                odds = (entered / (1 - entered)) / (inside / (1 - inside))
                weighted, mass = weighted + inside * odds, mass + inside
        told["odds_ratio"] = weighted / mass if mass else np.nan
        moving = (choice >= 0).sum()
        told["gating_rate"] = gated / moving if moving else np.nan
        harmed = Harmed(*p.harmed(self.state))
        affected = np.zeros(self.regions)
        for w in range(p.walkers):
            real = [r for r in np.atleast_1d(harmed.where[0, w]) if r >= 0]
            for r in real:
                affected[r] += harmed.weight[0, w] / len(real)
        self.state, _ = p.transition(before, acts, choice[None], found)
        told["harm"] = float(self.memory.advance(affected * self.per_walker))
        return choice, told
