"""Pieces of the push kernel, against the obvious."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
from rapo.cascade.push_kernel import _kth_largest
from rapo.cascade.setting import Setting
from rapo.cascade.stats import ENTRY_DEFORMED, ENTRY_NOMINAL
from rapo_core.params import FieldParams


@settings(deadline=None, max_examples=300)
@given(
    hnp.arrays(
        np.float32,
        st.integers(1, 30),
        elements=st.sampled_from(np.float32([0, 0.1, 0.25, 0.5, 0.9, 1]).tolist()),
    ),
    st.data(),
)
def test_the_kth_largest_is_that_of_a_sort(values, data):
    k = data.draw(st.integers(1, len(values)))
    assert _kth_largest(values.copy(), k) == np.sort(values)[-k]


@pytest.mark.parametrize("k", [1, 2, 4, 5])
def test_of_equally_probable_destinations_exactly_k_are_deformed(k):
    """A hub that reaches five sensitive leaves with probability 1/2, all in one scarred region."""
    leaves, p, psi = 5, 0.5, 0.25
    graph = Graph(
        indptr=np.r_[0, leaves + np.arange(leaves), 2 * leaves - 1],
        indices=np.r_[np.arange(1, leaves + 1), np.arange(2, leaves + 1)],
        prob=np.r_[np.full(leaves, p), np.zeros(leaves - 1)],  # edges that join V_sens
        positions=np.zeros((leaves + 1, 2)),
        sensitive=np.arange(leaves + 1) > 0,
        support=np.array([[0]]),
        weights=np.array([[1.0]]),
    )
    setting = Setting.default().replace(
        spread="contact", persistence=0.0, rates=(1e-6,) * 3, horizons=(5, 5, 5)
    )
    engine = Cascade(
        graph,
        1,
        setting=setting,
        params=FieldParams(w_G=0.0, w_H=1.0, psi_min=0.1),
        regions=np.r_[0, np.ones(leaves, int)],
        deformation=f"topk:{k}",
    )
    engine.start([0], [1])
    state = engine.snapshot()
    state["active"] = np.arange(leaves + 1)[None] == 0
    state["H"] = np.full_like(state["H"], -np.log(psi))
    engine.restore(state)
    trace = engine.step(np.array([2]))
    # the hub itself is injected into with next to no probability and ranks below the leaves
    assert trace[ENTRY_NOMINAL, 0] == pytest.approx(leaves * p)
    assert trace[ENTRY_DEFORMED, 0] == pytest.approx(k * p * psi + (leaves - k) * p)
