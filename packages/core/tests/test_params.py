"""The constants of the fields: the paper's values, ranges, and what is refused."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rapo_core.params import FieldParams

PAPER = {
    "lam": 0.1,
    "alpha": 0.5,
    "eta": 0.05,
    "tau": 0.3,
    "delta": 1.0,
    "w_G": 1.0,
    "w_H": 2.0,
    "psi_min": 0.1,
}
RATES = ("lam", "delta", "psi_min")  # in (0, 1]
AMOUNTS = ("alpha", "eta", "tau", "w_G", "w_H")  # in [0, inf)


def test_defaults_are_the_papers():
    assert FieldParams().to_dict() == PAPER
    assert list(FieldParams().to_dict()) == list(PAPER)


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("value", [5e-324, 0.5, 1.0])
def test_rates_reach_one_but_not_zero(name, value):
    assert getattr(FieldParams(**{name: value}), name) == value


@pytest.mark.parametrize("name", AMOUNTS)
@pytest.mark.parametrize("value", [0.0, 0.5, 1e6])
def test_amounts_may_be_zero_and_have_no_upper_end(name, value):
    assert getattr(FieldParams(**{name: value}), name) == value


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("value", [0.0, -0.1, 1.0000001, math.nan, math.inf, -math.inf])
def test_a_rate_out_of_range_is_named_with_its_range(name, value):
    message = rf"^{name} must be a number in \(0, 1\], got {value} \(\w.*\)$"
    with pytest.raises(ValueError, match=message):
        FieldParams(**{name: value})


@pytest.mark.parametrize("name", AMOUNTS)
@pytest.mark.parametrize("value", [-1e-9, -1.0, math.nan, math.inf])
def test_an_amount_out_of_range_is_named_with_its_range(name, value):
    with pytest.raises(
        ValueError, match=rf"^{name} must be a number in \[0, 1e\+09\], got {value} \(\w.*\)$"
    ):
        FieldParams(**{name: value})


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("value", ["much", None, [0.1, 0.2], 1j])
def test_what_is_no_number_is_refused_by_name_and_value(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be a number, got ") as caught:
        FieldParams(**{name: value})
    assert repr(value) in str(caught.value)


def test_an_integer_too_large_for_a_float_is_refused():
    with pytest.raises(ValueError, match=r"^alpha must be"):
        FieldParams(alpha=10**400)


def test_numbers_become_plain_floats():
    params = FieldParams(lam=1, alpha=np.float32(0.25), w_H=np.int64(3))
    assert [type(v) for v in params.to_dict().values()] == [float] * 8
    assert (params.lam, params.alpha, params.w_H) == (1.0, 0.25, 3.0)


def test_params_are_immutable_values():
    params = FieldParams(w_H=4.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        params.w_H = 1.0
    assert params == FieldParams(w_H=4)
    assert hash(params) == hash(FieldParams(w_H=4))
    assert params != FieldParams()
    assert pickle.loads(pickle.dumps(params)) == params


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"\['lambda', 'psi'\]; known are \['lam', 'alpha'"):
        FieldParams.from_dict({"psi": 0.1, "lambda": 0.1, "eta": 0.1})
    with pytest.raises(TypeError, match="gamma"):
        FieldParams(gamma=0.1)


def test_a_missing_name_takes_the_default():
    assert FieldParams.from_dict({"eta": 0.2}) == FieldParams(eta=0.2)
    assert FieldParams.from_dict({}) == FieldParams()


def test_a_bad_value_in_a_mapping_is_refused_too():
    with pytest.raises(ValueError, match=r"^tau must be a number in \[0, 1e\+09\], got -1.0"):
        FieldParams.from_dict({"tau": -1})


@settings(deadline=None, max_examples=50)
@given(
    st.fixed_dictionaries(
        {name: st.floats(0, 1, exclude_min=True) for name in RATES}
        | {name: st.floats(0, 1e9) for name in AMOUNTS}
    )
)
def test_a_dict_round_trips_exactly(values):
    assert FieldParams.from_dict(values).to_dict() == values
