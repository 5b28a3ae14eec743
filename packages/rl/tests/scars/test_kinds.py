"""What each kind does beside the common promises."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rapo.scars import GridField, KernelField, NetworkField, make, width_from
from rapo.scars.bounded import scar_cap
from rapo.scars.network import calibration
from rapo_core.params import FieldParams

quick = settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
pytestmark = pytest.mark.filterwarnings("ignore::rapo.scars.FullWarning")
SQUARE = [(0.0, 1.0), (0.0, 1.0)]


def test_a_grid_is_the_exact_field_on_its_knots():
    from benchmarks.scars.sheet import WIDTH, exact_psi, feed, make_sheet

    sheet = make_sheet(2, 1000, steps=60)
    grid = feed(GridField(SQUARE, width=WIDTH, resolution=21), sheet)
    knots = np.stack(np.meshgrid(*[np.arange(21) / 20] * 2), axis=-1).reshape(-1, 2)
    exact = exact_psi(sheet, knots)
    np.testing.assert_allclose(grid.conductance(knots), exact, rtol=1e-9)
    assert exact.min() < 0.7


@quick
@given(st.integers(0, 10_000))
def test_a_kernel_field_has_the_exact_values_on_centres_that_were_there_from_the_start(seed):
    rng = np.random.default_rng(seed)
    places = np.array([[0.3, 0.3], [0.5, 0.3], [0.3, 0.6]])
    kernel = KernelField(SQUARE, width=0.1, centres=50)
    grid = GridField(SQUARE, width=0.1, resolution=11)  # knots on the places
    points = np.clip(places[rng.integers(0, 3, (15, 4))] + rng.normal(size=(15, 4, 2)) / 80, 0, 1)
    shares = rng.random((15, 4)) / 4
    for field in (kernel, grid):
        field.deposit(places, [1e-9] * 3)  # the first harm makes them centres
        field.step()
        for x, share in zip(points, shares, strict=True):
            field.deposit(x, share)
            field.step()
    at, G, H = kernel.places()
    chosen = [int(np.flatnonzero((at == place).all(axis=1))[0]) for place in places]
    true_G, true_H = grid.fields(places)
    np.testing.assert_allclose(G[chosen], true_G, rtol=1e-6)
    np.testing.assert_allclose(np.minimum(true_H, scar_cap(FieldParams())), H[chosen], rtol=1e-6)


@quick
@given(st.integers(0, 10_000), st.integers(2, 10))
def test_no_scar_falls_when_centres_merge(seed, centres):
    """Each scarred centre stays, or its nearest neighbour is scarred at least as much."""
    rng = np.random.default_rng(seed)
    field = KernelField(SQUARE, FieldParams(tau=0.0), width=0.05, centres=centres)
    at, _, H = field.places()
    for _ in range(60):
        field.deposit(rng.random((1, 2)), [rng.random()])
        field.step()
        now, _, deep = field.places()
        for place, scar in zip(at, H, strict=True):
            near = np.argmin(((now - place) ** 2).sum(axis=1))
            assert deep[near] >= scar
        at, H = now, deep
    assert field.merges > 0
    assert len(at) == field.size == centres


@pytest.mark.parametrize("full", [{"kind": "kernel", "centres": 2},
                                  {"kind": "density", "components": 2}])  # fmt: skip
@pytest.mark.parametrize("deep", [0, 1])
def test_the_deeper_scar_survives_a_merge(full, deep):
    field = make(box=SQUARE, width=0.05, **full)
    near = [[0.2, 0.2], [0.3, 0.2]]
    for place in near:
        for _ in range(30 if place == near[deep] else 5):
            field.deposit([place], [1.0])
            field.step()
    scar = field.snapshot()["H"].max()
    field.deposit([[0.9, 0.9]], [0.1])
    field.step()
    assert field.merges == 1
    assert field.snapshot()["H"].max() >= scar > 0


def test_a_kernel_field_says_nothing_a_width_away_from_its_centres():
    field = KernelField(SQUARE, width=0.1)
    for _ in range(40):
        field.deposit([[0.5, 0.5]], [1.0])
        field.step()
    inside, outside = field.conductance([[0.59, 0.5], [0.6001, 0.5]])
    assert inside < 1
    assert outside == 1


def test_a_scar_is_capped_where_psi_is_at_its_floor():
    field = KernelField(SQUARE, width=0.1)
    for _ in range(300):
        field.deposit([[0.5, 0.5]], [1.0])
        field.step()
    assert field.places()[2].max() == scar_cap(FieldParams())
    for _ in range(200):
        field.step()
    assert field.conductance([[0.5, 0.5]])[0] == FieldParams().psi_min


def test_visits_near_harm_sharpen_the_border_and_others_cost_nothing():
    fuzzy, sharp = (KernelField(SQUARE, width=0.1) for _ in range(2))
    exact = GridField(SQUARE, width=0.1, resolution=101)
    beside = np.array([[0.57, 0.5]])
    for _ in range(40):
        for field in (fuzzy, sharp, exact):
            field.deposit([[0.5, 0.5]], [1.0])
        sharp.visit([[0.57, 0.5], [0.9, 0.9]])
        for field in (fuzzy, sharp, exact):
            field.step()
    true = exact.conductance([[0.59, 0.5]])
    near, far = sharp.conductance([[0.59, 0.5]]), fuzzy.conductance([[0.59, 0.5]])
    assert abs(near - true) < abs(far - true)
    assert fuzzy.size == 1
    assert sharp.size == 2
    assert (sharp.places()[0][1] == beside).all()
    fuzzy.visit([[0.555, 0.5]])  # a visit begins without harm: inherited scars would creep
    fuzzy.step()
    _, G, H = fuzzy.places()
    assert (G[1], H[1]) == (0, 0)
    assert H[0] > 1


@pytest.mark.parametrize("d", [2, 4, 8])
def test_the_kernel_field_is_within_a_twentieth_of_the_exact_one(d):
    from benchmarks.scars.curves import field_of, problem

    for seed in (0, 1):
        sheet, exact = problem(d, seed)
        field = field_of("kernel", sheet)
        error = np.abs(field.conductance(sheet.queries) - exact)
        assert error.mean() <= 0.05
        assert error[exact < 0.5].mean() <= 0.1  # not by cancelling, nor by psi = 1 everywhere
        assert field.numbers == 128 * (d + 2)
        assert sum(field.snapshot()[name].size for name in ("centres", "G", "H")) == field.numbers


def test_torch_is_imported_only_by_a_network():
    code = (
        "import sys, rapo; rapo.scars.make('kernel', [(0, 1)]); assert 'torch' not in sys.modules; "
        "rapo.scars.make('network', [(0, 1)]); assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_network_learns_what_its_reservoir_knows():
    field = NetworkField(SQUARE, width=0.15, reservoir=64, hidden=16, iterations=10)
    rng = np.random.default_rng(0)
    for _ in range(60):
        x = rng.random((12, 2))
        bad = x[:, 0] < 0.5
        field.deposit(x[bad], np.full(bad.sum(), 0.15))
        field.visit(x[~bad])
        field.step()
    psi = field.conductance([[0.2, 0.5], [0.95, 0.5]])
    assert psi[0] < 0.4
    assert psi[1] > 0.9


@quick
@given(hnp.arrays(float, 12, elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])),
       hnp.arrays(float, 12, elements=st.floats(0, 1)))  # fmt: skip
def test_the_calibration_of_a_network_rises_and_fits_best(x, y):
    at, fitted = calibration(x, y)
    assert np.all(np.diff(at) >= 0)
    assert np.all(np.diff(fitted) >= 0)
    assert fitted.mean() == pytest.approx(y.mean())
    loss = ((fitted - np.take(y, np.argsort(x, kind="stable"))) ** 2).sum()
    rng = np.random.default_rng(0)
    for _ in range(20):  # no other function of x that rises fits better
        places = np.unique(x)
        other = np.sort(rng.random(len(places)))
        rival = ((other[np.searchsorted(places, x)] - y) ** 2).sum()
        assert loss <= rival + 1e-12


def test_the_rule_for_the_width_is_the_spread_in_shares_of_the_box():
    rng = np.random.default_rng(0)
    middle = rng.uniform(0.3, 0.7, (500, 1, 2))
    choices = middle + 0.02 * rng.normal(size=(500, 9, 2))
    expected = 0.02 * np.sqrt(2 * 8 / 9)
    assert width_from(choices, SQUARE) == pytest.approx(expected, rel=0.05)
    assert width_from(200 * choices - 7, [(-7, 193)] * 2) == pytest.approx(
        width_from(choices, SQUARE)
    )


def test_the_rule_for_the_width_weighs_candidates_by_their_law():
    three = np.array([[[0.2, 0.5], [0.4, 0.5], [0.9, 0.5]]])
    assert width_from(three, SQUARE, [0.5, 0.5, 0.0]) == pytest.approx(0.1)
    assert width_from(three, SQUARE, [[0.5, 0.0, 0.5]]) == pytest.approx(0.35)
    assert width_from(three, SQUARE, np.full(3, 1 / 3)) == pytest.approx(width_from(three, SQUARE))
