"""Kernel and density fields against slow ones: every place, every field, every answer."""

import numpy as np
import pytest
from scar_reference import SlowDensity, SlowKernel

from rapo.scars import make
from rapo_core.params import FieldParams

pytestmark = pytest.mark.filterwarnings("ignore::rapo.scars.FullWarning")
PARAMS = FieldParams(tau=0.05, delta=0.999)
WIDTH = 0.12
QUERIES = np.random.default_rng(3).random((80, 2))


def pair(kind, most):
    slow = {"kernel": SlowKernel, "density": SlowDensity}[kind](WIDTH, most, PARAMS)
    size = {"kernel": "centres", "density": "components"}[kind]
    return make(kind, [(0, 1), (0, 1)], PARAMS, width=WIDTH, **{size: most}), slow


def steps(field, slow, seed, count, spread):
    """Harm around two places that move apart, and visits everywhere."""
    rng = np.random.default_rng(seed)
    for t in range(count):
        middle = np.array([[0.3, 0.4], [0.7, 0.6]])[rng.integers(0, 2, 4)]
        harm = np.clip(middle + spread * rng.normal(size=(4, 2)), 0, 1)
        shares = rng.uniform(0.05, 1, 4)
        visits = np.clip(harm + 0.1 * rng.normal(size=(4, 2)), 0, 1)
        field.deposit(harm, shares)
        field.visit(visits)
        field.step()
        slow.step(np.concatenate([harm, visits]), [*shares, 0, 0, 0, 0])
        assert field.size == len(slow.at) and field.merges == slow.merges, t


@pytest.mark.parametrize("kind", ["kernel", "density"])
@pytest.mark.parametrize(("most", "spread"), [(200, 0.08), (14, 0.15), (5, 0.05)])
@pytest.mark.parametrize("seed", range(4))
def test_every_place_and_answer_is_that_of_the_slow_field(kind, most, spread, seed):
    field, slow = pair(kind, most)
    steps(field, slow, seed, 25, spread)
    assert (slow.merges > 0) == (len(slow.at) == most)
    state = field.snapshot()
    places = state[{"kernel": "centres", "density": "means"}[kind]][0].T[: field.size]
    np.testing.assert_allclose(places, slow.at, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(state["G"][0, : field.size], slow.G, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(state["H"][0, : field.size], slow.H, rtol=1e-6, atol=1e-12)
    G, H = field.fields(QUERIES)
    expected = np.array([slow.fields(x) for x in QUERIES.tolist()])
    np.testing.assert_allclose(np.stack([G, H], axis=1), expected, rtol=1e-5, atol=1e-10)
    assert (expected[:, 1] > 0.1).any() and (expected[:, 1] == 0).any()


def test_harm_takes_the_place_of_a_clean_centre_that_is_too_near_and_of_no_other():
    """Two centres are left, wide apart: one harmed, one that is a visit near harm."""
    for clean in (True, False):
        field, slow = pair("kernel", 2)
        first = [(0.5, 0.5)] * 12
        for step in range(12):
            second = (0.585, 0.5)
            shares = [1.0, 0.0] if clean or step < 6 else [1.0, 0.4]
            field.deposit([first[step]], shares[:1])
            if shares[1]:
                field.deposit([second], shares[1:])
            else:
                field.visit([second])
            field.step()
            slow.step([first[step], second], shares)
        field.deposit([[0.65, 0.5]], [0.7])
        field.step()
        slow.step([(0.65, 0.5)], [0.7])
        at, G, H = field.places()
        np.testing.assert_allclose(at, slow.at)
        np.testing.assert_allclose(G, slow.G, rtol=1e-9)
        np.testing.assert_allclose(H, slow.H, rtol=1e-9)
        assert field.merges == slow.merges == 1
