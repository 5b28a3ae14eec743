"""Metrics against values worked out by hand or by another road, so that a slip in one shows."""

import gymnasium
import networkx as nx
import numpy as np
import pytest

from rapo.cascade.engine import Cascade
from rapo.cascade.setting import REPLAY, Setting
from rapo.envs.single import GraphDiffusionEnv
from rapo.envs.task import X_START
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.generate import generate
from rapo.rsd.runner import evaluate

HORIZONS = (10, 4, 10)


class Ledger(gymnasium.Env):
    """A memory that grows by 0.05 a step of Exposure, shown; and scars that are told by phase."""

    stimuli = 1
    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(0, 1, (2,))
    memory_mask = np.array([False, True])

    def reset(self, *, seed=None, options=None):
        self.shown, self.washed, self.entered = 0.0, 0, 0
        return np.zeros(2), {}

    def activate(self, stimulus):
        if stimulus != 1:
            raise ValueError(f"there is one stimulus, got {stimulus}")
        self.entered += 1

    def deactivate(self):
        self.washed = 1

    def reset_observable(self, seed=None):
        return np.array([0.0, self.shown])

    def step(self, action):
        if self.entered == 1 and not self.washed:
            self.shown += 0.05
            scar = 1.0
        elif self.entered == 1:
            self.washed += 1
            scar = 10.0 * (self.washed - 1)
        else:
            scar = 99.0
        info = {"reach": 1.0, "sensitive_mass": 1.0, "scar_mass": scar}
        return np.array([0.0, self.shown]), 0.0, False, False, info


class ByMemory:
    """Acts by the memory it is shown: the law is (m, 1 - m)."""

    batched = True

    def law(self, x):
        return np.stack([x[:, 1], 1 - x[:, 1]], axis=1)

    def __call__(self, x):
        return np.zeros(len(x), np.int64)


def test_asd_is_the_mean_total_variation_step_by_step():
    result = evaluate(Ledger(), ByMemory(), episodes=1, horizons=HORIZONS)
    exposed = 0.05 * np.arange(10)  # what Exposure showed before each of its steps
    expected = np.abs(0.5 - exposed).mean()  # TV of (m, 1 - m) and (m', 1 - m') is |m - m'|
    assert result.frame["ASD"][0] == pytest.approx(expected, abs=1e-6)


def test_scar_mass_is_that_of_the_washouts_end():
    result = evaluate(Ledger(), ByMemory(), episodes=1, horizons=HORIZONS)
    assert result.frame["ScarMass"][0] == 40.0


@pytest.fixture(scope="module")
def graph():
    return generate(60, 1)


def aggressive(x):
    return np.zeros(len(x), np.int64)


aggressive.batched = True


def test_containment_is_the_farthest_node_of_replay_along_the_edges(graph):
    env = GraphDiffusionVectorEnv(1, graph=graph, deformation="off")
    digraph = nx.DiGraph(zip(graph.sources.tolist(), graph.indices.tolist(), strict=True))
    digraph.add_nodes_from(range(graph.n))
    farther = 0
    for seed in range(6):
        result = evaluate(env, aggressive, episodes=1, seed=seed, horizons=(120, 20, 6))
        seeds = graph.support[result.frame["stimulus"][0] - 1].tolist()
        hops = nx.multi_source_dijkstra_path_length(digraph, set(seeds), weight=None)
        active = result.cascade[result.phase == REPLAY].any(axis=0)
        expected = max(hops[v] for v in np.flatnonzero(active).tolist())
        assert result.frame["R_c"][0] == expected
        ever = result.cascade.any(axis=0)
        farther += max(hops.get(v, 0) for v in np.flatnonzero(ever).tolist()) > expected
    assert farther  # Exposure went farther somewhere, so counting it would show


def same_until_replay(full, off):
    """Deformed as `full` in Exposure and washout, and nominal in Replay."""
    early = full.phase < REPLAY
    for name in ("odds_ratio", "reach", "scar_mass"):
        np.testing.assert_array_equal(full.traces[name][:, early], off.traces[name][:, early])
    washout = full.of_phase("odds_ratio", 1)
    assert (washout[np.isfinite(washout)] < 1).any()  # deformed there, so that off would show
    replay = off.of_phase("odds_ratio", REPLAY)
    assert (replay[np.isfinite(replay)] == 1).all()


WASHED = {"episodes": 8, "horizons": (150, 40, 30)}


def test_off_at_replay_leaves_exposure_and_washout_deformed(graph):
    env = GraphDiffusionVectorEnv(1, graph=graph)
    full = evaluate(env, aggressive, **WASHED)
    same_until_replay(full, evaluate(env, aggressive, off_at_replay=True, **WASHED))


class Protocol(GraphDiffusionEnv):
    """One of our environments that RSD drives as it drives a foreign one."""

    def reset_observable(self, seed=None):
        return super().reset_observable(seed)


def test_off_at_replay_leaves_the_washout_of_a_driven_environment_deformed(graph):
    env = Protocol(graph=graph)
    full = evaluate(env, lambda x: 0, **WASHED)
    same_until_replay(full, evaluate(env, lambda x: 0, off_at_replay=True, **WASHED))
    named = Protocol(graph=graph, deform_phases=(True, True, False))
    same_until_replay(full, evaluate(named, lambda x: 0, **WASHED))


def test_on_its_own_schedule_replay_begins_at_the_start_of_exposure(graph):
    setting = Setting.default().replace(horizons=(40, 3, 10))
    env = GraphDiffusionVectorEnv(8, graph=graph, setting=setting, deformation="off")
    env.reset(seed=0)
    for _ in range(43):
        before = env.engine.active.any(axis=1)
        x, _, _, _, info = env.step(np.zeros(8, np.int64))
    assert before.any()  # somebody was active when the washout ended
    assert (info["phase"] == REPLAY).all() and (info["clock"] == 0).all()
    np.testing.assert_array_equal(x, np.tile(X_START, (8, 1)))
    assert not env.engine.active.any()


def test_a_local_scope_rounds_its_share_of_the_regions_up(graph):
    regions = np.where(graph.sensitive, np.arange(graph.n) % 5, 5)
    regions = np.unique(regions, return_inverse=True)[1]
    engine = Cascade(graph, 1, regions=regions, deformation="local:0.5")
    assert len(engine.harm_regions) == 5
    assert engine.gated_regions.sum() == 3
