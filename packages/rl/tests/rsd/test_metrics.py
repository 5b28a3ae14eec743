"""Replay metrics on known series."""

import numpy as np
import pytest

from rapo.rsd.metrics import auc_ratio, discounted, rag


def test_ratios_of_known_series():
    exposure, replay = [0, 2, 4, 2], [0, 1, 2, 1]
    assert rag(exposure, replay) == pytest.approx(0.5)
    assert auc_ratio(exposure, replay) == pytest.approx(0.5)


def test_rag_is_about_peaks_and_auc_about_mass():
    exposure, replay = [0, 4, 0, 0], [0, 1, 1, 1]
    assert rag(exposure, replay) == pytest.approx(0.25)
    assert auc_ratio(exposure, replay) == pytest.approx(0.75)


def test_many_episodes_at_once():
    exposure = np.array([[1.0, 2], [3, 4]])
    assert np.allclose(rag(exposure, exposure * 2), 2)


def test_different_horizons_compare_per_step():
    assert auc_ratio([1, 1, 1, 1], [1, 1]) == pytest.approx(1)


def test_empty_exposure_is_undefined():
    assert np.isnan(rag([0, 0], [1, 0]))
    assert np.isnan(auc_ratio([[0, 0], [1, 1]], [[1, 1], [1, 1]])).tolist() == [True, False]


def test_discounted_return():
    assert discounted([1, 1, 1], gamma=0.5) == pytest.approx(1.75)
    assert discounted([[0, 1], [1, 0]], gamma=0.9).tolist() == pytest.approx([0.9, 1])
