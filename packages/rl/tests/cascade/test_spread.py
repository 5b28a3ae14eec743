"""The spreading laws: every backend follows the slow reference bit by bit, and keeps the law."""

import numpy as np
import pytest
from cascade_reference import ReferenceCascade

from rapo.cascade.engine import Cascade
from rapo.cascade.setting import DECAY, REPLAY
from rapo.cascade.stats import ENTRY_DEFORMED, ENTRY_NOMINAL, HARM, PARTITION, REACH, SENSITIVE
from rapo_core.params import FieldParams

KEYS = np.array([11, 12, 13], np.uint64)
STIMULI = [1, 7, 20]
LAWS = {"outbreak": 0.9, "cascade": None, "contact": 0.2}
"""The laws, each with a persistence."""


def law(setting, spread):
    return setting.replace(spread=spread, persistence=LAWS[spread])


@pytest.mark.parametrize("scope", ["full", "off", "topk:3", "local:0.5"])
@pytest.mark.parametrize("spread", LAWS)
@pytest.mark.parametrize("backend", ["lanes", "push"])
def test_every_law_follows_the_reference(small_graph, short, spread, scope, backend):
    if (scope, backend) == ("topk:3", "lanes"):
        pytest.skip("ranking runs on backend push only")
    setting = law(short, spread)
    params = FieldParams(eta=0.2, tau=0.05, delta=0.999)
    engine = Cascade(
        small_graph, 3, setting=setting, params=params, deformation=scope, backend=backend
    )
    engine.start(KEYS, STIMULI)
    gated_regions = np.zeros(engine.region_count, bool)
    gated_regions[engine.harm_regions[engine.gated_regions]] = True
    slow = [
        ReferenceCascade(small_graph, setting, engine.regions, params, engine.scope, gated_regions)
        for _ in KEYS
    ]
    for reference, key, z in zip(slow, KEYS, STIMULI, strict=True):
        reference.start(int(key), z)
    reached = 0
    for actions in np.random.default_rng(0).integers(0, 3, (sum(setting.horizons), 3)):
        stats = engine.step(actions)
        active, spent, G, H = engine.active, engine.spent, engine.G, engine.H
        for i, reference in enumerate(slow):
            harm = reference.step(int(actions[i]))
            assert np.array_equal(active[i], reference.active)
            assert np.array_equal(G[i], reference.memory.G)
            assert np.array_equal(H[i], reference.memory.H)
            assert stats[HARM, i] == harm
            if (reference.phase, reference.clock) != (REPLAY, 0):  # then the state is at rest again
                assert stats[REACH, i] == reference.active.sum()
                assert stats[SENSITIVE, i] == (reference.active & small_graph.sensitive).sum()
            if reference.phase != DECAY or spread == "contact":
                assert np.array_equal(spent[i], reference.spent)
            enterable = reference.q[reference.entered].astype(float)
            psi = reference.psi[reference.entered] if scope != "off" else np.ones(len(enterable))
            assert stats[ENTRY_NOMINAL, i] == pytest.approx(enterable.sum(), rel=1e-5)
            assert stats[ENTRY_DEFORMED, i] == pytest.approx((enterable * psi).sum(), rel=1e-5)
            product = (enterable * psi + 1 - enterable).prod()
            assert stats[PARTITION, i] == pytest.approx(product, rel=1e-5)
            reached += active[i].sum()
    assert reached > 300
    assert H.max() > 0.02
