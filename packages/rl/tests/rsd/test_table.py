"""How the table of metrics writes numbers and names."""

from types import SimpleNamespace

import numpy as np
import pytest

from rapo.rsd.table import _calibrated, _digits, _number


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [(0.44, 2, "0.44"), (12.0, 0, "12"), (0.004, 2, "4.0e-03"), (-0.004, 2, "-4.0e-03"),
     (0.006, 2, "0.01"), (0.0, 2, "0.00")],
)  # fmt: skip
def test_a_small_number_is_not_shown_as_0(value, digits, shown):
    assert _number(value, digits) == shown


def test_the_smallest_mean_of_a_metric_gets_three_digits():
    assert [_digits(means) for means in ([0.5, 20], [250.0], [0.004], [np.nan, 0], [3e-9])] == [
        3, 0, 4, 2, 4
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("manifest", "aimed_at"),
    [
        ({}, True),
        ({"deform_phases": [False, False, True]}, True),
        ({"deform_phases": [True, True, False]}, False),
        ({"off_at_replay": True}, False),
        ({"deformation": "topk:4"}, False),
        ({"fit": None}, False),
    ],
)
def test_odds_are_calibrated_where_a_fit_measured_them_in_a_deformed_replay(manifest, aimed_at):
    whole = {"deformation": "full", "fit": {"tau": 0.1}, **manifest}
    assert _calibrated(SimpleNamespace(manifest=whole)) is aimed_at
