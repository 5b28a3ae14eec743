"""`fit`: a measured odds ratio on graphs nobody tuned anything for."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from rapo.cascade.draws import derive
from rapo.cascade.engine import Cascade
from rapo.cascade.regions import make_regions
from rapo.cascade.setting import Setting
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs import fit as module
from rapo.graphs import fit_search
from rapo.graphs.exposure import exposure_point, fit_episodes, nominal_harm
from rapo.graphs.fit import THETA, Fit, fit
from rapo.graphs.fit_search import TAUS, Search
from rapo.graphs.fitted import chosen_fit
from rapo.graphs.generate import generate
from rapo.graphs.load import from_networkx
from rapo.rsd.runner import evaluate
from rapo_core.memory import HarmMemory
from rapo_core.params import FieldParams

PARAMS = Setting.default().params
"""The constants of a fit that is given none."""
COMPACT = Setting.named("compact")


def aggressive(x):
    return np.zeros(len(x), np.int64)


aggressive.batched = True


@pytest.fixture(scope="module")
def blocks():
    """Three blocks of 120 nodes, one of them sensitive."""
    inside, between = 0.06, 0.004
    law = [[inside if a == b else between for b in range(3)] for a in range(3)]
    graph = nx.stochastic_block_model([120] * 3, law, seed=3)
    return from_networkx(graph, sensitive="block=1", sensitive_part="largest")


@pytest.fixture(scope="module")
def karate():
    return from_networkx(nx.karate_club_graph(), setting=COMPACT)


def test_a_fit_reaches_theta_and_a_fresh_evaluation_agrees(blocks):
    found = fit(blocks)
    assert found.reached
    assert found.odds <= THETA
    env = GraphDiffusionVectorEnv(1, graph=blocks)
    assert env.fit == found
    result = evaluate(env, aggressive, episodes=20, seed=1000)
    assert result.frame["OddsRatio"].mean() == pytest.approx(found.odds, abs=0.08)


def test_selectivity_is_what_a_fresh_evaluation_finds(blocks):
    found = fit(blocks)
    env = GraphDiffusionVectorEnv(1, graph=blocks)
    frame = evaluate(env, aggressive, episodes=20, seed=1000, selectivity=True).frame
    assert found.selectivity > 0.15
    assert frame["OddsSame"].mean() == pytest.approx(found.odds_same, abs=0.1)
    assert frame["OddsOther"].mean() == pytest.approx(found.odds_other, abs=0.1)


def test_the_next_larger_tau_is_not_enough(blocks):
    found = fit(blocks)
    search = Search(blocks, PARAMS, Setting.default(), THETA)
    i = int(np.flatnonzero(np.isclose(found.params.tau, TAUS))[0])
    assert search.run(found.regions, found.params).enough
    assert not search.run(found.regions, replace(PARAMS, tau=float(TAUS[i - 1]))).enough


def test_only_v_sens_is_cut_and_its_pieces_are_connected(blocks):
    found = fit(blocks)
    outside = np.unique(found.regions[~blocks.sensitive])
    assert outside.tolist() == [found.count - 1]
    assert (found.regions[blocks.sensitive] < found.count - 1).all()
    for piece in range(found.count - 1):
        members = np.flatnonzero(found.regions == piece)
        assert connected_components(blocks.neighbours[members][:, members])[0] == 1


def test_two_fits_agree_bit_by_bit(blocks, monkeypatch):
    first = fit(blocks)
    module._KNOWN.clear()
    real = Cascade.__init__
    monkeypatch.setattr(Cascade, "__init__", lambda self, *a, **k: real(self, *a, threads=2, **k))
    again = fit(blocks)
    assert again is not first
    assert again == first
    assert (again.odds, again.odds_other) == (first.odds, first.odds_other)


def test_a_fit_is_remembered(blocks):
    assert fit(blocks) is fit(blocks)
    assert fit(blocks, theta=0.5) is not fit(blocks)
    assert fit(blocks, params=replace(PARAMS, tau=0.7)) is fit(blocks)  # tau is what is found


def test_a_milder_theta_keeps_a_larger_tau(blocks):
    regions = make_regions("pieces:5", blocks)
    taus = [fit(blocks, regions=regions, theta=theta).params.tau for theta in (0.3, 0.41, 0.6)]
    assert taus == sorted(taus)
    assert taus[0] < taus[-1]


def test_given_regions_stay_and_tau_is_fitted_to_them(blocks):
    found = fit(blocks, regions="community:4")
    assert found.moved == "tau"
    assert found.spec == "community:4"
    straddle = Setting.default().straddle
    expected = make_regions("community:4", blocks, straddle=straddle)
    np.testing.assert_array_equal(found.regions, expected)
    assert found.odds <= THETA
    assert found.params.tau != PARAMS.tau


def test_where_tau_may_not_move_regions_do_and_the_cost_is_told(blocks):
    found = fit(blocks, move="regions")
    free = fit(blocks)
    assert found.params == PARAMS
    assert found.reached
    assert found.count < free.count
    assert found.free_selectivity == free.selectivity
    assert found.selectivity < free.selectivity
    assert f"{free.selectivity:.2f}" in str(found)


def test_the_scars_alone_hold_a_tiny_graph_down(karate):
    found = fit(karate, setting=COMPACT)
    assert found.odds <= THETA
    assert found.odds_same <= 1.05 * THETA
    # regions of five would reach theta by the trace alone and remember little
    coarse = Search(karate, FieldParams(), COMPACT, THETA)
    coarse.theta = 1.0
    one = coarse.run(make_regions("pieces:5", karate), FieldParams(tau=0.86))
    assert one.odds <= THETA
    assert one.odds_same > 1.05 * THETA


def test_finer_pieces_are_taken_where_five_throttle_everything(karate):
    assert fit(karate, setting=COMPACT).spec != "pieces:5"


def test_the_draws_of_a_fit_are_those_of_no_evaluation(blocks):
    fitting = {int(k) for purpose in (1, 2) for k in fit_episodes(blocks, purpose)[0]}
    seeds = np.arange(200_000)
    evaluating = derive(derive(seeds, 0), 0)
    assert not fitting & {int(k) for k in evaluating}
    assert len(fitting) == 40


def test_every_stimulus_is_tried(blocks):
    for stimuli, episodes in ((1, 20), (7, 20), (20, 20), (40, 40), (200, 64)):
        support = np.tile(blocks.support[:1], (stimuli, 1))
        weights = np.tile(blocks.weights[:1], (stimuli, 1))
        graph = blocks.replace(support=support, weights=weights)
        z = fit_episodes(graph, 1)[1]
        assert len(z) == episodes
        assert (z.min(), len(np.unique(z))) == (1, min(stimuli, episodes))
        assert z.max() <= stimuli


def test_the_nominal_record_is_what_the_memory_of_a_stationary_run_sees(blocks):
    setting = Setting.default().replace(horizons=(120, 60, 1))
    regions = make_regions("pieces:5", blocks)
    record = nominal_harm(blocks, regions, setting)
    keys, z = fit_episodes(blocks, 1)
    engine = Cascade(blocks, len(keys), setting=setting, regions=regions, deformation="off")
    engine.start(keys, z)
    memory = HarmMemory(
        regions=record.shape[1], batch=len(keys), params=FieldParams(lam=1, alpha=1)
    )
    total = np.zeros_like(record)
    for _ in range(120):  # who is active before the step is affected by it
        active = engine.active
        counts = np.stack([active[:, regions == r].sum(1) for r in engine.harm_regions], axis=1)
        harm = np.minimum(0.1 * counts.sum(1), 1)
        shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
        memory.step(harm=harm, weights=shares)
        total += memory.G
        engine.run(0, 1)
    np.testing.assert_allclose(record, total / 120, atol=1e-6)


def test_the_share_orders_the_odds(blocks):
    regions = make_regions("pieces:5", blocks)
    search = Search(blocks, PARAMS, Setting.default(), THETA)
    shares, odds = [], []
    for tau in (1.0, 0.1, 0.03, 0.01):
        params = FieldParams(tau=tau)
        shares.append(exposure_point(blocks, regions, params).share)
        odds.append(search.run(regions, params).odds)
    assert shares == sorted(shares)
    assert odds == sorted(odds, reverse=True)


def test_one_stimulus_has_no_selectivity(karate):
    graph = karate.replace(support=karate.support[:1], weights=karate.weights[:1])
    found = fit(graph)
    assert np.isnan(found.selectivity)
    assert Fit.from_dict(found.to_dict()) == found


def test_a_fit_survives_its_plain_form(blocks):
    found = fit(blocks)
    again = Fit.from_dict(found.to_dict())
    assert again == found
    np.testing.assert_array_equal(again.regions, found.regions)
    with pytest.raises(ValueError, match="theta"):
        Fit.from_dict({k: v for k, v in found.to_dict().items() if k != "theta"})


def test_what_is_fitted_depends_on_what_is_given(blocks):
    setting = Setting.default()
    made = generate(60, 1)
    free = {"regions": None, "params": None, "setting": setting}
    assert chosen_fit(made, None, **free) is None
    assert chosen_fit(made, True, **free).moved == "tau and regions"
    assert chosen_fit(blocks, None, **free).moved == "tau and regions"
    assert chosen_fit(blocks, False, **free) is None
    assert chosen_fit(blocks, None, **{**free, "regions": "node"}).moved == "tau"
    fixed = chosen_fit(blocks, None, **{**free, "params": FieldParams(tau=0.2)})
    assert (fixed.moved, fixed.params.tau) == ("regions", 0.2)
    both = {**free, "params": FieldParams(), "regions": "node"}
    assert chosen_fit(blocks, None, **both) is None
    with pytest.raises(ValueError, match="nothing is left to fit"):
        chosen_fit(blocks, True, **both)
    with pytest.raises(ValueError, match="fit must be True"):
        chosen_fit(blocks, "yes", **free)
    with pytest.raises(ValueError, match="this is"):
        chosen_fit(made, fit(blocks), **free)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"move": "w_H"}, "w_H"),
        ({"theta": 1.0}, "theta"),
        ({"setting": {}}, "setting must be a Setting"),
        ({"regions": "node", "move": "regions"}, "regions are given"),
    ],
)
def test_what_cannot_be_fitted_is_named(blocks, options, named):
    with pytest.raises(ValueError, match=named):
        fit(blocks, **options)


def test_a_graph_whose_stimuli_do_no_harm_is_named():
    path = nx.DiGraph([(i, i + 1) for i in range(9)])
    graph = from_networkx(
        path, sensitive=[0, 1, 2], positions=np.random.default_rng(0).random((10, 2)), scale=False
    )
    away = graph.replace(support=np.array([[7, 8, 9]]), weights=np.array([[0.4, 0.3, 0.3]]))
    with pytest.raises(ValueError, match="V_sens"):
        fit(away)


def test_tau_goes_on_down_until_little_of_the_sensitive_mass_stays(karate, monkeypatch):
    found = fit(karate, regions="node", setting=COMPACT)
    module._KNOWN.clear()
    monkeypatch.setattr(fit_search, "MASS", 0.1)
    stricter = fit(karate, regions="node", setting=COMPACT)
    assert stricter.mass <= 0.1 < found.mass
    assert stricter.params.tau < found.params.tau
    module._KNOWN.clear()
    monkeypatch.setattr(fit_search, "MASS", 1e-6)  # no tau gets there: the odds decide alone
    assert fit(karate, regions="node", setting=COMPACT).params.tau == found.params.tau
    module._KNOWN.clear()


def test_the_mass_that_stays_is_what_a_fresh_evaluation_finds(blocks):
    env = GraphDiffusionVectorEnv(1, graph=blocks)
    result = evaluate(env, aggressive, episodes=20, seed=1000, against_P0=True)
    assert result.pooled()["SM_vs_P0"]["ratio"] == pytest.approx(fit(blocks).mass, abs=0.05)


def test_the_largest_tau_that_is_enough_is_found_by_halving():
    search = Search.__new__(Search)
    search.params, tried = PARAMS, []

    def run(regions, params):
        tried.append(params.tau)
        return fit_search.Tried(regions, params, 0.0, 0.0, 0.0, params.tau <= largest)

    search.run = run
    for wanted in (0, 1, len(TAUS) // 3, len(TAUS) - 2, len(TAUS) - 1):
        largest = float(TAUS[wanted])
        tried.clear()
        assert search.lower_tau(np.zeros(3, np.int32)).params.tau == largest
        assert len(tried) <= 2 + np.ceil(np.log2(len(TAUS)))
