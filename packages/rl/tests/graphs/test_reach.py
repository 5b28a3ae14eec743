"""Scaling by the share of nodes that a wave reaches."""

import numpy as np
import pytest

from rapo.cascade.setting import Setting
from rapo.graphs.generate import generate
from rapo.graphs.reach import TOLERANCE, factor_for_reach, reached_share
from rapo.graphs.scale import scale_to_target
from rapo_core.checks import UserError

LAWS = {
    "outbreak": Setting.default().replace(
        spread="outbreak", persistence=0.9, support=5, reach_target=0.25
    ),
    "cascade": Setting.default().replace(
        spread="cascade", persistence=None, support=5, reach_target=0.3
    ),
}


@pytest.mark.parametrize("spread", LAWS)
@pytest.mark.parametrize("seed", [1001, 1002])
def test_a_scaled_graph_reaches_the_target(spread, seed):
    setting = LAWS[spread]
    graph = generate(200, seed, setting)
    assert reached_share(graph, setting, seed=seed) == pytest.approx(
        setting.reach_target, rel=TOLERANCE
    )
    other = reached_share(graph, setting, seed=seed + 1, rounds=30)
    assert other == pytest.approx(setting.reach_target, rel=0.15)


def test_the_factor_undoes_a_factor_on_the_graph():
    setting = LAWS["outbreak"]
    graph = generate(200, 1001, setting)
    faint = graph.replace(prob=graph.prob / 7)
    factor = factor_for_reach(faint, setting, seed=1001)
    assert factor == pytest.approx(7, rel=0.05)
    scaled = scale_to_target(faint, setting, seed=1001)
    assert scaled.meta["scale"] == factor


def test_the_share_counts_every_node_that_was_active(small_graph):
    setting = LAWS["cascade"].replace(rates=(5.0,) * 3, injection_cap=0.95)
    silent = small_graph.replace(prob=np.zeros_like(small_graph.prob))
    seeds = small_graph.support.shape[1] / small_graph.n
    assert reached_share(silent, setting) == pytest.approx(seeds, rel=0.02)


def test_targets_that_cannot_be_reached_are_named(small_graph):
    setting = LAWS["outbreak"].replace(rates=(5.0,) * 3, injection_cap=0.95)
    with pytest.raises(UserError, match=r"0\.02 is not above the 0\.\d+ .* injection alone"):
        factor_for_reach(small_graph, setting.replace(reach_target=0.02))
    silent = small_graph.replace(prob=np.zeros_like(small_graph.prob))
    with pytest.raises(UserError, match=r"reach_target 0\.5 is out of reach"):
        factor_for_reach(silent, setting.replace(reach_target=0.5))
