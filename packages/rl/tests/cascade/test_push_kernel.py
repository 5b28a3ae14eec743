"""Pieces of the push kernel, against the obvious."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rapo.cascade.push_kernel import _kth_largest


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
