"""Final sizes against the engine on random digraphs, and off@rep against measured Exposures."""

import numpy as np
import pytest

from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
from rapo.cascade.setting import AGGRESSIVE, DECAY, REPLAY, Setting
from rapo.cascade.stats import REACH
from rapo.graphs.generate import generate
from rapo.theory import (
    final_size,
    off_at_replay,
    reproduction_number,
    share_before_harm,
    transmissibility,
)
from rapo_core.deformation import gate_odds
from rapo_core.params import FieldParams

NODES, DEGREE = 3000, 6
SEEDS = 30


@pytest.fixture(scope="module")
def digraph():
    """Every node has a Poisson number of sources and of targets, 6 in the mean."""
    rng = np.random.default_rng(5)
    source, target = rng.integers(NODES, size=(2, DEGREE * NODES))
    pairs = np.unique(np.stack([source, target], axis=1)[source != target], axis=0)
    indptr = np.zeros(NODES + 1, np.int32)
    np.cumsum(np.bincount(pairs[:, 0], minlength=NODES), out=indptr[1:])
    sensitive = np.zeros(NODES, bool)
    sensitive[:1] = True
    return Graph(
        indptr=indptr,
        indices=pairs[:, 1].astype(np.int32),
        prob=np.full(len(pairs), 0.5, np.float32),
        positions=rng.random((NODES, 2)).astype(np.float32),
        sensitive=sensitive,
        support=np.sort(rng.choice(NODES, (1, SEEDS), replace=False)).astype(np.int32),
        weights=np.full((1, SEEDS), 1 / SEEDS),
        meta={},
    )


def reached(graph, probability, spread, persistence, psi):
    """Mean share of nodes that 20 waves reach with every probability gated by `psi`."""
    contracted = float(gate_odds(probability, psi))
    stays = None if persistence is None else float(gate_odds(persistence, psi))
    setting = Setting.default().replace(
        spread=spread, persistence=stays, injection_cap=0.999, rates=(60.0,) * 3,
        influence_tilt=0.0, risk_tilt=0.0, horizons=(300, 1, 1),
    )  # fmt: skip
    gated = graph.replace(prob=np.full(len(graph.prob), contracted, np.float32))
    engine = Cascade(
        gated, 20, setting=setting, regions=np.zeros(graph.n, np.int32), deformation="off"
    )
    engine.start(np.arange(20, dtype=np.uint64), np.ones(20, int))
    for _ in range(299):
        engine.step(np.full(20, AGGRESSIVE))
    return (engine.active | engine.spent).mean()


@pytest.mark.parametrize("psi", [1.0, 0.6, 0.4])
@pytest.mark.parametrize(
    ("spread", "persistence", "probability"),
    [("outbreak", 0.9, 0.04), ("outbreak", 0.5, 0.15), ("cascade", None, 0.4)],
)
def test_the_final_size_is_that_of_the_simulation(digraph, spread, persistence, probability, psi):
    R = reproduction_number(digraph.edges / NODES, probability, persistence, psi)
    expected = final_size(R, SEEDS / NODES)
    measured = reached(digraph, probability, spread, persistence, psi)
    assert measured == pytest.approx(expected, rel=0.1, abs=0.01)


def test_a_gate_lowers_the_hazard_and_the_duration():
    free, gated = (transmissibility(1e-4, 0.99, psi) for psi in (1.0, 0.3))
    assert gated / free == pytest.approx(0.3 * (1 - 0.99 + 0.3 * 0.99), rel=0.02)
    assert transmissibility(1e-4, None, 0.3) == pytest.approx(0.3e-4, rel=1e-3)
    assert transmissibility(0.2, 0.0) == pytest.approx(0.2)


@pytest.mark.parametrize(("R", "seeded"), [(1.5, 0.0), (3.0, 0.01), (0.8, 0.1), (1.0001, 0.0)])
def test_the_final_size_solves_its_equation(R, seeded):
    z = final_size(R, seeded)
    assert 0 < z < 1
    assert z == pytest.approx(1 - (1 - seeded) * np.exp(-R * z), abs=1e-9)
    assert final_size(1.0) == 0 == final_size(0.7)


OUTBREAK = Setting.default().replace(
    spread="outbreak", persistence=0.936, factor=0.075, inside_weight=15.0, entering_weight=2.9,
    leaving_weight=0.75, echo=0.78, neighbours=2.8, support=7, inside_share=0.5, inside_spread=0.03,
    rates=(2.9, 1.8, 2.7), injection_cap=0.95, influence_tilt=1.1, risk_tilt=6.0, psi_min=0.28,
    regions="community:10.7", ignition_runs=100,
)  # fmt: skip


def off_at_rep(setting):
    """AUC-R of off@rep and of RAPO, and the nominal curve of Exposure, pooled over 40 episodes."""
    graph = generate(250, 1200, setting)
    curves = {}
    for deformation in ("full", "off"):
        engine = Cascade(graph, 40, setting=setting, deformation=deformation)
        engine.start(np.arange(40, dtype=np.uint64), 1 + np.arange(40) % 20)
        exposure = engine.run(np.zeros(40, int), setting.horizons[0])[:, REACH].sum(axis=1)
        engine.run(np.zeros(40, int), setting.horizons[DECAY])
        state = engine.snapshot()
        replay = engine.run(np.zeros(40, int), setting.horizons[REPLAY])[:, REACH].sum()
        engine.restore(state)
        engine.set_deformation(False)
        free = engine.run(np.zeros(40, int), setting.horizons[REPLAY])[:, REACH].sum()
        curves[deformation] = (exposure, replay / exposure.sum(), free / exposure.sum())
    return curves["full"][2], curves["full"][1], curves["off"][0]


def test_off_at_rep_is_one_where_exposure_is_over_before_its_harm():
    off, _, nominal = off_at_rep(OUTBREAK)
    assert share_before_harm(nominal, OUTBREAK.delay) > 0.6
    assert off == pytest.approx(1, abs=0.12)
    assert off_at_replay(1.0, 0.3) == 1


def test_contact_goes_on_after_its_harm_and_cannot_have_it():
    setting = Setting.named("echo")
    off, rapo, nominal = off_at_rep(setting)
    before = share_before_harm(nominal, setting.delay)
    assert before < 0.15
    kept = rapo / off  # Replay with the gate over Replay without it
    assert 1.5 < off <= 1.1 * off_at_replay(before, kept)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"psi must be in \(0, 1\], got 0"):
        transmissibility(0.1, 0.5, 0)
    with pytest.raises(ValueError, match="has no activity"):
        share_before_harm(np.zeros(5), 2)
    with pytest.raises(ValueError, match="persistence must be"):
        transmissibility(0.1, 1.0)


def test_the_params_of_the_gate_are_those_of_the_core():
    assert transmissibility(0.5, None, FieldParams().psi_min) == pytest.approx(0.1 / 1.1)
