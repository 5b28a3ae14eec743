"""`fit`: a measured odds ratio on graphs nobody tuned anything for."""

import warnings
from dataclasses import replace

import gymnasium
import networkx as nx
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import rapo
from rapo.cascade.draws import derive
from rapo.cascade.engine import Cascade
from rapo.cascade.regions import make_regions
from rapo.cascade.setting import Setting
from rapo.envs.task import report_of
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs import exposure, fit_search
from rapo.graphs import fit as module
from rapo.graphs.exposure import exposure_point, fit_episodes, nominal_harm
from rapo.graphs.fit import THETA, Fit, FitWarning, IdleWarning, chosen_fit, fit
from rapo.graphs.fit_search import TAUS, Search
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
    module._FITS.clear()
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
    module._FITS.clear()
    monkeypatch.setattr(fit_search, "MASS", 0.1)
    stricter = fit(karate, regions="node", setting=COMPACT)
    assert stricter.mass <= 0.1 < found.mass
    assert stricter.params.tau < found.params.tau
    module._FITS.clear()
    monkeypatch.setattr(fit_search, "MASS", 1e-6)  # no tau gets there: the odds decide alone
    assert fit(karate, regions="node", setting=COMPACT).params.tau == found.params.tau
    module._FITS.clear()


def test_the_mass_that_stays_is_what_a_fresh_evaluation_finds(blocks):
    env = GraphDiffusionVectorEnv(1, graph=blocks)
    result = evaluate(env, aggressive, episodes=20, seed=1000, against_P0=True)
    assert result.pooled()["SM_vs_P0"]["ratio"] == pytest.approx(fit(blocks).mass, abs=0.05)


def test_the_largest_tau_that_is_enough_is_found_by_halving():
    search = Search.__new__(Search)
    search.params, tried = PARAMS, []

    def run(regions, params):
        tried.append(params.tau)
        return fit_search.Tried(regions, params, 0.0, 0.0, 0.0, params.tau <= largest, {})

    search.run = run
    for wanted in (0, 1, len(TAUS) // 3, len(TAUS) - 2, len(TAUS) - 1):
        largest = float(TAUS[wanted])
        tried.clear()
        assert search.lower_tau(np.zeros(3, np.int32)).params.tau == largest
        assert len(tried) <= 2 + np.ceil(np.log2(len(TAUS)))


def test_a_fit_builds_an_engine_for_each_choice_of_regions_and_an_environment_one(
    blocks, monkeypatch
):
    """Runs that differ in tau alone share an engine, and the nominal Exposure runs once."""
    engines, exposures = [], []
    build, start = Cascade.__init__, Cascade.start

    def built(self, *args, **kwargs):
        engines.append(self)
        build(self, *args, **kwargs)

    def started(self, keys, *args, **kwargs):
        gated = bool(self._schedule[2, 0])
        run = (self.regions.tobytes(), self.params if gated else None, tuple(np.asarray(keys)))
        exposures.append(run)
        start(self, keys, *args, **kwargs)

    monkeypatch.setattr(Cascade, "__init__", built)
    monkeypatch.setattr(Cascade, "start", started)
    module._FITS.clear()
    exposure._RECORDS.clear()
    fitted = fit(blocks, params=PARAMS)
    choices = len({engine.regions.tobytes() for engine in engines})
    assert len(engines) == choices < fitted.runs
    assert len(exposures) == fitted.runs + 1 + choices  # one under P0, and the nominal records
    assert len(set(exposures)) == len(exposures)
    exposures.clear()
    GraphDiffusionVectorEnv(1, graph=blocks, fit=fitted)
    assert len(engines) == choices + 1 and not exposures


@pytest.fixture(scope="module")
def crowd():
    """300 nodes in three blocks; with the paper's constants next to nothing scars."""
    law = [[0.08 if a == b else 0.004 for b in range(3)] for a in range(3)]
    blocks = nx.stochastic_block_model([100] * 3, law, seed=5)
    return from_networkx(blocks, sensitive="block=1", sensitive_part="largest")


@pytest.fixture(autouse=True)
def untold():
    module._IDLE.clear()
    module._SHORT.clear()


def test_a_graph_of_ones_own_is_fitted_and_its_outcome_told(crowd):
    env = gymnasium.make("rapo/GraphDiffusion-v0", graph=crowd)
    found = fit(crowd)
    _, info = env.reset(seed=0)
    engine = env.unwrapped.engine
    np.testing.assert_array_equal(engine.regions, found.regions)
    assert engine.params == found.params
    told = {name.removeprefix("fit_"): info[name] for name in info if name.startswith("fit_")}
    assert told == pytest.approx(found.outcome())
    assert set(told) == {"regions", "tau", "odds", "share", "selectivity", "reached"}
    assert "calibrated" in repr(env.unwrapped)
    assert f"{found.params.tau:.3g}" in repr(env.unwrapped)


def test_a_generated_graph_keeps_the_papers_constants_unless_asked():
    plain = GraphDiffusionVectorEnv(2, nodes=60, graph_seed=1)
    assert plain.fit is None
    assert plain.engine.params == FieldParams(psi_min=rapo.Setting.default().psi_min)
    compact = rapo.Setting.named("compact")
    first = GraphDiffusionVectorEnv(2, nodes=60, graph_seed=1, setting=compact)
    assert first.engine.params == FieldParams()
    assert not [name for name in plain.reset(seed=0)[1] if name.startswith("fit_")]
    again = GraphDiffusionVectorEnv(2, graph=plain.graph)  # generated, though it is passed on
    assert again.fit is None
    asked = GraphDiffusionVectorEnv(2, nodes=60, graph_seed=1, fit=True)
    assert asked.fit is fit(plain.graph)
    assert asked.reset(seed=0)[1]["fit_tau"].tolist() == [asked.fit.params.tau] * 2


def test_given_parts_are_not_fitted(crowd):
    given = GraphDiffusionVectorEnv(1, graph=crowd, regions="node")
    np.testing.assert_array_equal(given.engine.regions, np.arange(crowd.n))
    assert given.fit.moved == "tau"
    fixed = GraphDiffusionVectorEnv(1, graph=crowd, params=FieldParams(tau=0.2))
    assert fixed.engine.params.tau == 0.2
    assert fixed.fit.moved == "regions"
    with pytest.warns(IdleWarning):
        both = GraphDiffusionVectorEnv(1, graph=crowd, params=FieldParams(), regions="node")
    assert both.fit is None


def test_an_environment_like_it_is_not_fitted_anew(crowd, monkeypatch):
    env = GraphDiffusionVectorEnv(1, graph=crowd)
    monkeypatch.setattr("rapo.envs.vector.chosen_fit", _refuse)
    changed = env.like(3, params=FieldParams(tau=env.engine.params.tau, w_H=4.0))
    np.testing.assert_array_equal(changed.engine.regions, env.engine.regions)
    assert changed.engine.params.w_H == 4.0
    assert changed.fit is None  # other constants than it measured: its odds mean nothing here
    assert env.like(3).fit is env.fit
    assert "calibrated" not in repr(changed)


def test_an_environment_like_it_keeps_its_constants_and_regions():
    env = GraphDiffusionVectorEnv(1, nodes=60, params=FieldParams(w_H=4.0), regions="grid:3")
    again = env.like(2)
    assert again.engine.params == env.engine.params
    np.testing.assert_array_equal(again.engine.regions, env.engine.regions)


def _refuse(graph, wanted, **given):
    assert isinstance(wanted, rapo.Fit)
    return wanted


def test_an_idle_memory_is_told_once_with_the_remedy(crowd):
    with pytest.warns(IdleWarning) as caught:
        GraphDiffusionVectorEnv(1, graph=crowd, fit=False)
    text = str(caught[0].message)
    assert f"tau {fit(crowd).params.tau:.2g}" in text
    assert len([w for w in caught if w.category is IdleWarning]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", IdleWarning)
        GraphDiffusionVectorEnv(1, graph=crowd, fit=False)  # told already
        GraphDiffusionVectorEnv(1, graph=crowd)
        GraphDiffusionVectorEnv(1, nodes=250)
        GraphDiffusionVectorEnv(1, graph=crowd, fit=False, deformation="off")


def test_the_operating_point_of_an_environment_is_that_of_its_regions_and_constants(crowd):
    fitted = GraphDiffusionVectorEnv(1, graph=crowd).operating_point
    with pytest.warns(IdleWarning):
        plain = GraphDiffusionVectorEnv(1, graph=crowd, fit=False).operating_point
    assert plain.idle
    assert plain.share < 0.1 < fitted.share
    assert fitted.share == fit(crowd).share


@pytest.mark.parametrize(
    ("changes", "params", "named"),
    [
        ({"horizons": (20, 5, 20)}, None, "before harm arrives"),
        ({}, FieldParams(psi_min=0.6), "psi_min"),
        ({}, FieldParams(w_H=0.0), "w_H"),
    ],
)
def test_a_fit_that_falls_short_says_so_and_why(crowd, changes, params, named):
    setting = rapo.Setting.default().replace(**changes)
    with pytest.warns(FitWarning, match=named) as caught:
        env = GraphDiffusionVectorEnv(1, graph=crowd, setting=setting, params=params)
    (warning,) = (w for w in caught if w.category is FitWarning)
    assert warning.filename == __file__  # where the one who can change it is
    assert not env.reset(seed=0)[1]["fit_reached"][0]


def test_cascades_that_outrun_halved_odds_are_told():
    strong = nx.powerlaw_cluster_graph(300, 4, 0.3, seed=1)
    nx.set_edge_attributes(strong, 0.5, "w")
    with pytest.warns(UserWarning, match="spread far"):
        graph = from_networkx(strong, probability="w", setting=rapo.Setting.named("compact"))
    with pytest.warns(FitWarning, match="scale"):
        GraphDiffusionVectorEnv(1, graph=graph, setting=rapo.Setting.named("compact"))


@pytest.mark.parametrize("wrong", [nx.path_graph(5), "net.npz", 7])
def test_what_is_no_graph_is_named_with_how_to_make_one(wrong):
    with pytest.raises(ValueError, match=r"rapo\.from_networkx"):
        GraphDiffusionVectorEnv(1, graph=wrong)
    with pytest.raises(ValueError, match=type(wrong).__name__):
        fit(wrong)


def test_labels_arrays_and_callables_are_regions(crowd):
    by_label = GraphDiffusionVectorEnv(1, graph=crowd, regions="label:block").engine
    blocks = crowd.labels["block"]
    for value in set(blocks):
        members = [i for i, label in enumerate(blocks) if label == value]
        assert len(set(by_label.regions[members])) == 1
    assert by_label.region_count == 3
    ids = make_regions("pieces:5", crowd)
    as_array = GraphDiffusionVectorEnv(1, graph=crowd, regions=ids).engine
    as_callable = GraphDiffusionVectorEnv(1, graph=crowd, regions=lambda graph: ids).engine
    np.testing.assert_array_equal(as_array.regions, as_callable.regions)


@pytest.mark.parametrize(
    ("regions", "named"),
    [
        ("label:colour", "'colour'.*'block'"),
        (lambda graph: np.full(graph.n, -1), "callable.*-1"),
        (lambda graph: np.zeros(3, int), r"callable.*\(3,\)"),
        ("pieces:0", "pieces:0"),
    ],
)
def test_regions_that_cannot_be_are_named(crowd, regions, named):
    with pytest.raises(ValueError, match=named):
        GraphDiffusionVectorEnv(1, graph=crowd, regions=regions)


def test_the_mass_that_may_stay_decides_on_a_graph_of_fifteen_families():
    """The largest tau of the ladder that leaves a quarter; the next one leaves .29."""
    families = from_networkx(nx.florentine_families_graph(), setting=COMPACT)
    fitted = fit(families, regions="node", setting=COMPACT)
    assert fitted.params.tau == pytest.approx(2 / 1.15**16)
    search = Search(families, COMPACT.params, COMPACT, THETA)
    regions = make_regions("node", families)
    higher = search.run(regions, replace(COMPACT.params, tau=2 / 1.15**15))
    assert fitted.mass <= 0.25 < higher.mass < 0.3
    assert higher.odds <= THETA and not higher.enough  # its odds alone would do


def test_scars_alone_are_measured_over_the_first_fifty_steps_of_replay(blocks):
    fitted = fit(blocks)
    keys, stimuli = fit_episodes(blocks, purpose=2)
    engine = Cascade(blocks, len(keys), regions=fitted.regions, params=fitted.params)
    engine.start(keys, stimuli)
    engine.run(0, sum(engine.setting.horizons[:2]))
    odds = report_of(engine.run(0, 50).swapaxes(0, 1))["odds_ratio"].astype(float)
    assert fitted.odds_same == pytest.approx(np.nanmean(np.nanmean(odds, axis=0)), rel=1e-5)
