"""Action laws: what is taken as one, and which action a draw gives."""

import numpy as np
import pytest

from rapo_core.action_probs import checked_law, sample


def test_rows_that_sum_to_one_are_a_law_within_rounding():
    law = np.array([[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]])
    assert checked_law(law, 2) is law
    off = law + np.array([[4e-6, 0, 0], [0, 0, 0]])
    assert checked_law(off, 2) is off


@pytest.mark.parametrize(
    ("law", "episodes"),
    [
        ([[0.5, 0.5]], 2),  # a row too few
        ([0.5, 0.5], 2),  # no rows at all
        ([[0.5, 0.6], [0.5, 0.5]], 2),  # above 1
        ([[0.5, 0.4], [0.5, 0.5]], 2),  # below 1
        ([[0.5, 0.5], [1.5, -0.5]], 2),  # sums to 1 with a negative share
        ([[0.5, 0.5], [np.nan, 0.5]], 2),
        ([[1.0, 1.0], [0.0, 0.0]], 2),  # columns that sum to 1, not rows
    ],
)
def test_anything_else_is_refused_by_its_shape_and_values(law, episodes):
    with pytest.raises(ValueError, match=r"2 distributions .* got shape \("):
        checked_law(np.array(law), episodes)


def test_a_draw_gives_the_action_in_whose_share_it_lies():
    law = np.array([[0.25, 0.0, 0.75]] * 4)
    assert sample(law, np.array([0.0, 0.2499, 0.25, 0.9999])).tolist() == [0, 0, 2, 2]


def test_a_law_that_sums_to_a_little_less_than_one_still_gives_an_action():
    law = np.array([[0.5, 0.499999, 0.0]])
    assert sample(law, np.array([np.nextafter(1.0, 0.0)])).tolist() == [1]
