"""`Setting`: one file of values, validated, replaced and written back whole."""

import dataclasses
import math

import pytest

from rapo.cascade.setting import (
    ACTIONS,
    AGGRESSIVE,
    CONSERVATIVE,
    DECAY,
    EXPOSURE,
    MODERATE,
    PHASES,
    REPLAY,
    Setting,
)
from rapo_core.checks import UserError

DEFAULT = Setting.default()
COMPACT = Setting.named("compact")


def test_the_default_keeps_what_the_paper_fixes():
    assert DEFAULT.horizons == (500, 200, 500)
    assert DEFAULT.delay == 50
    assert 0.15 <= DEFAULT.sensitive_low <= DEFAULT.sensitive_high <= 0.25
    assert 1 <= DEFAULT.neighbours <= 3
    assert DEFAULT.rates[AGGRESSIVE] > DEFAULT.rates[MODERATE] > DEFAULT.rates[CONSERVATIVE]


def test_the_default_is_read_once():
    assert Setting.default() is Setting.default()


def test_names_and_numbers_of_actions_and_phases_agree():
    assert ACTIONS[AGGRESSIVE] == "aggressive"
    assert ACTIONS[MODERATE] == "moderate"
    assert ACTIONS[CONSERVATIVE] == "conservative"
    assert [PHASES[i] for i in (EXPOSURE, DECAY, REPLAY)] == ["exposure", "decay", "replay"]
    assert (len(ACTIONS), len(PHASES)) == (3, 3)


def test_a_dict_round_trips():
    assert Setting.from_dict(DEFAULT.to_dict()) == DEFAULT
    lists = {**DEFAULT.to_dict(), "rates": [0.5, 0.25, 0.125], "horizons": [10, 5, 10]}
    back = Setting.from_dict(lists)
    assert back.rates == (0.5, 0.25, 0.125)
    assert back.horizons == (10, 5, 10)
    assert hash(back) == hash(Setting.from_dict(lists))  # a list would not hash


def test_replace_changes_a_copy():
    other = DEFAULT.replace(persistence=0.5, rates=[1, 0.5, 0.25])
    assert (other.persistence, other.rates) == (0.5, (1, 0.5, 0.25))
    assert other != DEFAULT
    assert Setting.default() == DEFAULT
    assert other.replace(persistence=DEFAULT.persistence, rates=DEFAULT.rates) == DEFAULT


def test_a_setting_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        DEFAULT.support = 3
    assert hash(DEFAULT) == hash(DEFAULT.replace())


def test_a_setting_has_no_room_for_other_names_and_takes_its_own_by_name_alone():
    assert not hasattr(DEFAULT, "__dict__")
    assert all(field.kw_only for field in dataclasses.fields(Setting))


@pytest.mark.parametrize(
    ("name", "edge"),
    [
        ("neighbours", 1),
        ("inside_weight", 1e-9),
        ("sensitive_low", 1e-9),
        ("sensitive_high", 0.999),
        ("sensitive_low", DEFAULT.sensitive_high),
        ("support", 1),
        ("cascade_target", 1e-9),
        ("edge_cap", 1e-9),
        ("edge_cap", 1),
        ("persistence", 0),
        ("persistence", 0.999),
        ("delay", 1),
        ("rates", (1e-9, 1e-9, 1e-9)),
        ("influence_tilt", 0),
        ("risk_tilt", 0),
        ("kappa_s", 0),
        ("kappa", 1e-9),
        ("stretch", 1),
        ("echo", 0),
        ("echo", 1),
        ("entering_weight", 1e-9),
        ("leaving_weight", 1e-9),
        ("factor", 0),
        ("inside_share", 0),
        ("inside_share", 1),
        ("inside_spread", 0),
        ("psi_min", 1e-9),
        ("psi_min", 1),
        ("seeding", "ball"),
        ("seeding", "split"),
        ("outside_weight", 0),
        ("horizons", (1, 1, 1)),
    ],
)
def test_the_edge_of_every_range_is_inside(name, edge):
    assert getattr(DEFAULT.replace(**{name: edge}), name) == edge


BEYOND = [
    ("neighbours", 0.99),
    ("inside_weight", 0.0),
    ("inside_weight", -1.0),
    ("sensitive_low", 0.0),
    ("sensitive_low", 0.99),  # above sensitive_high
    ("sensitive_high", 1.0),
    ("support", 0),
    ("cascade_target", 0.0),
    ("edge_cap", 0.0),
    ("edge_cap", 1.01),
    ("persistence", 1.0),
    ("persistence", -0.1),
    ("delay", 0),
    ("rates", (0.5, 0.5, 0.0)),
    ("rates", (0.5, -0.5, 0.5)),
    ("rates", (math.nan, 0.5, 0.5)),
    ("influence_tilt", -0.1),
    ("risk_tilt", -0.1),
    ("kappa_s", -0.1),
    ("kappa", 0.0),
    ("stretch", 0.99),
    ("echo", -0.01),
    ("echo", 1.01),
    ("entering_weight", 0.0),
    ("leaving_weight", 0.0),
    ("factor", -0.1),
    ("inside_share", -0.01),
    ("inside_share", 1.01),
    ("inside_spread", -0.1),
    ("psi_min", 0.0),
    ("psi_min", 1.01),
    ("seeding", "box"),
    ("outside_weight", -0.1),
    ("horizons", (500, 0, 500)),
    ("horizons", (500, 1.5, 500)),
]
NUMBERS = (
    "neighbours", "inside_weight", "sensitive_low", "sensitive_high", "support", "cascade_target",
    "edge_cap", "persistence", "delay", "influence_tilt", "risk_tilt", "kappa_s", "outside_weight",
    "kappa", "stretch", "echo", "entering_weight", "leaving_weight", "factor", "inside_share",
    "inside_spread", "psi_min", "budget",
)  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BEYOND)
def test_a_value_out_of_range_is_named_with_what_is_allowed(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be .*, got ") as caught:
        DEFAULT.replace(**{name: value})
    assert str(value) in str(caught.value)


@pytest.mark.parametrize("name", ["rates", "horizons"])
@pytest.mark.parametrize("value", [(), (1, 1), (1, 1, 1, 1)])
def test_three_numbers_are_three(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be 3 values, got "):
        DEFAULT.replace(**{name: value})


@pytest.mark.parametrize("value", [math.nan, math.inf, "much", None])
def test_what_is_no_finite_number_is_refused_by_name(value):
    for name in NUMBERS:  # shares out of order may be blamed on the lower one
        with pytest.raises(ValueError, match=rf"^({name}|sensitive_low) "):
            DEFAULT.replace(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delay", 1.5),
        ("support", 2.5),
        ("rates", 0.5),
        ("rates", (math.inf, 0.5, 0.5)),
        ("rates", ("a", "b", "c")),
        ("horizons", (math.inf, 1, 1)),
        ("horizons", (math.nan, 1, 1)),
        ("regions", 3),
        ("straddle", "no"),
        ("seeding", 1),
        ("seeding", None),
    ],
)
def test_a_value_of_another_kind_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"^{name} "):
        DEFAULT.replace(**{name: value})


def test_unknown_and_missing_names_are_refused():
    with pytest.raises(ValueError, match=r"unknown or missing settings \['speed'\]; needed are"):
        DEFAULT.replace(speed=1)
    values = DEFAULT.to_dict()
    del values["kappa"], values["delay"]
    with pytest.raises(ValueError, match=r"unknown or missing settings \['delay', 'kappa'\]"):
        Setting.from_dict(values)


@pytest.mark.parametrize(("spread", "persistence"), [("cascade", 0.5), ("contact", None)])
def test_a_persistence_that_does_not_fit_the_law_is_refused(spread, persistence):
    with pytest.raises(UserError, match=rf"persistence .*'{spread}'"):
        DEFAULT.replace(spread=spread, persistence=persistence)
    with pytest.raises(UserError, match="one of outbreak, cascade, contact, got 'sir'"):
        DEFAULT.replace(spread="sir")


def test_a_cascade_survives_replace_and_plain_values():
    cascade = DEFAULT.replace(spread="cascade", persistence=None)
    plain = {name: value for name, value in cascade.to_dict().items() if value is not None}
    assert Setting.from_dict(plain) == cascade.replace()


def test_the_cap_of_a_setting_survives_replace():
    assert COMPACT.replace(persistence=0.5).edge_cap == 0.95
    assert DEFAULT.replace(edge_cap=0.8).replace(persistence=0.5).edge_cap == 0.8
