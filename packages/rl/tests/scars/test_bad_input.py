"""Bad input is refused by name and value, and leaves the field as it was."""

import numpy as np
import pytest
from gymnasium.spaces import Box as SpaceBox

from rapo.scars import GridField, KernelField, make, width_from

SQUARE = [(0.0, 1.0), (0.0, 1.0)]
NAN = float("nan")


@pytest.mark.parametrize(
    ("points", "shares", "received"),
    [
        ([[0.5, 1.5]], [1.0], r"0\.5, 1\.5.*dimension 1"),
        ([[0.5, NAN]], [1.0], "nan"),
        ([[0.5, np.inf]], [1.0], "inf"),
        ([[0.5]], [1.0], r"\(1, 1\)"),
        ([0.5, 0.5], [1.0], r"\(2,\)"),
        ([[[0.5, 0.5]]], [[1.0]], r"\(1, 1, 2\)"),
        ([[0.5, 0.5]], [1.0, 2.0], r"\(2,\)"),
        ([[0.5, 0.5]], 1.0, r"\(\)"),
        ([[0.5, 0.5]], [-0.25], r"-0\.25"),
        ([[0.5, 0.5]], [NAN], "nan"),
        ([[0.5, 0.5]], [np.inf], "inf"),
        ([[0.5, 0.5]], [1e200], r"1e\+200"),
        ([["a", "b"]], [1.0], "a"),
        ([[0.5, 0.5]], ["much"], "much"),
    ],
)
def test_bad_deposits(kind, build, points, shares, received):
    field = build(kind)
    before = field.snapshot()
    with pytest.raises(ValueError, match=received):
        field.deposit(points, shares)
    after = field.snapshot()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_batch_refuses_other_numbers_of_episodes(kind, build):
    field = build(kind, batch=3)
    with pytest.raises(ValueError, match=r"\(3, k, 2\), got \(2, 4, 2\)"):
        field.conductance(np.zeros((2, 4, 2)))
    with pytest.raises(ValueError, match=r"\(4, 2\)"):
        field.visit(np.zeros((4, 2)))
    for wrong in ([3], [-1], [0.5], "all"):
        with pytest.raises(ValueError, match=r"0\.\.2"):
            field.reset(wrong)


def test_a_query_outside_the_box_is_refused(kind, build):
    with pytest.raises(ValueError, match=r"-0\.1.*\[0, 1\]"):
        build(kind).conductance([[0.5, 0.5], [-0.1, 0.5]])


def test_advance_refuses_bad_numbers_and_other_numbers_of_points(kind, build):
    field = build(kind, delay=2)
    for affected, received in (([-1.0], "-1"), ([NAN], "nan"), ([1.0, 2.0], r"\(2,\)")):
        with pytest.raises(ValueError, match=received):
            field.advance([[0.5, 0.5]], affected)
    field.advance([[0.5, 0.5]], [1.0])
    with pytest.raises(ValueError, match="got 2 after 1"):
        field.advance([[0.5, 0.5], [0.1, 0.1]], [1.0, 1.0])


@pytest.mark.parametrize(
    "box",
    [[(0, 0)], [(1, 0)], [(0, NAN)], [(0, np.inf)], [0, 1], [], "box", [(0, 1, 2)], None],
)
def test_bad_boxes(box):
    with pytest.raises(ValueError, match="box must"):
        KernelField(box)


def test_a_gymnasium_box_is_a_box():
    space = SpaceBox(np.array([0.0, -2.0]), np.array([1.0, 2.0]), dtype=np.float64)
    assert KernelField(space).conductance([[0.5, -1.5]]).tolist() == [1.0]


@pytest.mark.parametrize(
    ("options", "received"),
    [
        ({"width": 0}, "width.*0"),
        ({"width": NAN}, "width.*nan"),
        ({"width": 2.0}, r"width.*2\.0"),
        ({"width": "wide"}, "width.*wide"),
        ({"centres": 1}, "centres.*1"),
        ({"centres": 12.5}, r"centres.*12\.5"),
        ({"batch": 0}, "batch.*0"),
        ({"delay": -1}, "delay.*-1"),
        ({"params": {"lam": 0.1}}, "params.*lam"),
    ],
)
def test_bad_options(options, received):
    with pytest.raises(ValueError, match=received):
        KernelField(SQUARE, **options)


@pytest.mark.parametrize("kind", ["Kernel", "", None, 3])
def test_an_unknown_kind_is_named_with_the_choices(kind):
    with pytest.raises(ValueError, match="kernel, grid, density, network") as caught:
        make(kind, SQUARE)
    assert repr(kind) in str(caught.value)


def test_a_grid_that_would_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"64\^8"):
        GridField([(0, 1)] * 8, width=0.1)


@pytest.mark.parametrize(
    ("change", "received"),
    [
        ({"H": -1.0}, "H"),
        ({"H": NAN}, "H"),
        ({"shares": "x"}, "shares"),
        ({"points": 7.0}, "points"),
    ],
)
def test_a_bad_snapshot_changes_nothing(kind, build, change, received):
    field = build(kind)
    field.deposit([[0.5, 0.5]], [1.0])
    state = field.snapshot()
    ((name, value),) = change.items()
    wrong = {**state, name: np.full(state[name].shape, value)}
    with pytest.raises(ValueError, match=received):
        field.restore(wrong)
    for mapping in ({}, 3, {"H": state["H"]}):
        with pytest.raises(ValueError, match="snapshot"):
            field.restore(mapping)
    assert all(np.array_equal(state[n], field.snapshot()[n]) for n in state)


def test_a_snapshot_of_another_size_is_refused(kind, build):
    with pytest.raises(ValueError, match="shape"):
        build(kind, batch=2).restore(build(kind, batch=3).snapshot())


@pytest.mark.parametrize(
    ("candidates", "received"),
    [
        (np.zeros((3, 1, 2)), r"\(3, 1, 2\)"),
        (np.zeros((4, 3)), r"\(4, 3\)"),
        (np.zeros((3, 4, 2)), "same point"),
        (np.full((3, 4, 2), 1.5), r"1\.5"),
    ],
)
def test_bad_candidates(candidates, received):
    with pytest.raises(ValueError, match=received):
        width_from(candidates, SQUARE)


@pytest.mark.parametrize("law", [[0.5, 0.5], [0.5, 0.6, 0.1], [-0.5, 1.0, 0.5], [np.nan, 0.5, 0.5]])
def test_bad_laws_of_candidates(law):
    with pytest.raises(ValueError, match="law"):
        width_from(np.random.default_rng(0).random((4, 3, 2)), SQUARE, law)
