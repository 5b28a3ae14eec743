"""The table of methods: consistent in itself, and what the paper's methods see and pay."""

import numpy as np
import pytest

from rapo.agents.methods import (
    DELAYED_HARM,
    HARM,
    LOCAL_SHARE,
    METHODS,
    SCAR,
    SLOW_DECAY,
    TOP_K,
    TRACE,
    method_named,
)
from rapo.agents.resolve import resolve
from rapo.agents.run_config import graph_run
from rapo.cascade.setting import Setting
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo_core.params import FieldParams

TRAINED = [row for row in METHODS.values() if row.policy_of is None]
EVALUATED = [row for row in METHODS.values() if row.policy_of is not None]


def config(method):
    return graph_run(method=method, nodes=40, setting=Setting.default().replace(support=5))


def test_names_are_those_of_the_paper():
    assert set(METHODS) == {
        "GE", "SS", "DR", "Shield", "Shield-UM", "PM-ST", "PM-RNN", "RAPO", "off@rep",
        "slow-decay", "top-k", "local", "RAPO-x",
    }  # fmt: skip
    assert all(name == row.name and row.about for name, row in METHODS.items())


@pytest.mark.parametrize(
    ("name", "observe", "costs", "deformation", "network"),
    [
        ("GE", "x", (), "off", "mlp"),
        ("SS", "x", (HARM,), "off", "mlp"),
        ("DR", "x", (DELAYED_HARM,), "off", "mlp"),
        ("PM-ST", "xGH", (TRACE, SCAR), "off", "mlp"),
        ("PM-RNN", "x", (DELAYED_HARM,), "off", "gru"),
        ("RAPO", "xGH", (TRACE, SCAR), "full", "mlp"),
        ("RAPO-x", "x", (TRACE, SCAR), "full", "mlp"),
    ],
)
def test_what_the_trained_methods_see_pay_and_sample_from(
    name, observe, costs, deformation, network
):
    row = METHODS[name]
    assert (row.observe, row.costs, row.deformation, row.network) == (
        observe, costs, deformation, network,
    )  # fmt: skip
    assert row.policy_of is None and row.shield is None and not row.evaluation


def test_costs_read_the_right_entries_of_info():
    assert (HARM.key, TRACE.key, SCAR.key) == ("cost", "cost_G", "cost_H")
    assert DELAYED_HARM.key == HARM.key and DELAYED_HARM.carried and not HARM.carried


def test_trained_rows_are_the_ones_above():
    assert {row.name for row in TRAINED} == {"GE", "SS", "DR", "PM-ST", "PM-RNN", "RAPO", "RAPO-x"}


@pytest.mark.parametrize("row", EVALUATED, ids=lambda row: row.name)
def test_evaluations_are_of_trained_methods_and_see_what_those_see(row):
    policy = METHODS[row.policy_of]
    assert policy.policy_of is None
    assert (row.observe, row.deformation) == (policy.observe, policy.deformation)
    assert row.evaluation or row.shield in ("fixed", "matched")


@pytest.mark.parametrize("row", METHODS.values(), ids=lambda row: row.name)
def test_every_row_builds_the_environments_of_its_policy(row):
    made = config(row.name)
    trained = resolve(made).environment(2)
    assert isinstance(trained, GraphDiffusionVectorEnv)
    assert trained.observe == row.observe
    assert str(trained.engine.scope) == made.trained.deformation
    evaluated = resolve(made).evaluation()
    assert evaluated.observe == trained.observe
    assert evaluated.single_observation_space == trained.single_observation_space
    evaluated.reset(seed=0)
    evaluated.step(evaluated.action_space.sample())


def test_evaluations_of_rapo_change_what_their_names_say():
    rapo = config("RAPO")
    plain, off, slow, top, local = (
        resolve(rapo).evaluation(name) for name in (None, "off@rep", "slow-decay", "top-k", "local")
    )
    assert plain.options["deform_phases"] == (True, True, True)
    assert str(plain.engine.scope) == "full" and plain.engine.params.delta == 1
    assert off.options["deform_phases"] == (True, True, False)
    assert slow.engine.params.delta == SLOW_DECAY
    assert str(top.engine.scope) == f"topk:{TOP_K}"
    assert str(local.engine.scope) == f"local:{LOCAL_SHARE}"
    for env in (off, top, local):
        assert env.engine.params == plain.engine.params


@pytest.mark.parametrize(("policy", "other"), [("GE", "off@rep"), ("SS", "GE"), ("RAPO", "Shield")])
def test_a_policy_is_not_evaluated_as_a_method_it_does_not_belong_to(policy, other):
    with pytest.raises(ValueError, match=f"{other} cannot evaluate a policy of {policy}"):
        resolve(config(policy)).evaluation(other)


@pytest.mark.parametrize("name", ["rapo", "RAPO", "pm-st", "OFF@REP"])
def test_case_does_not_matter(name):
    assert method_named(name).name.lower() == name.lower()
    assert config(name).method == method_named(name).name


@pytest.mark.parametrize(
    ("wrong", "near"), [("RAPPO", "RAPO"), ("pmst", "PM-ST"), ("topk", "top-k")]
)
def test_unknown_methods_are_told_the_nearest(wrong, near):
    with pytest.raises(ValueError, match=f"{wrong}.*GE.*did you mean {near}\\?"):
        method_named(wrong)


def test_a_name_like_none_of_them_gets_no_suggestion():
    with pytest.raises(ValueError, match="'zzzz'") as caught:
        method_named("zzzz")
    assert "did you mean" not in str(caught.value)


def test_only_carried_costs_have_a_trace_as_long_as_the_delay():
    by_method = {name: config(name) for name in ("SS", "DR", "PM-RNN", "RAPO")}
    ppo, delay = by_method["SS"].ppo, by_method["SS"].setting.delay
    decays = {
        name: [c.decay for c in resolve(made).constraints()] for name, made in by_method.items()
    }
    own = ppo.cost_gamma * ppo.gae_lambda
    assert decays["SS"] == [own] and decays["RAPO"] == [own, own]
    assert decays["DR"] == decays["PM-RNN"] == [1 - 1 / delay]
    assert decays["DR"][0] ** delay == pytest.approx(1 / 2.718, abs=0.01)


@pytest.mark.parametrize("deformation", ["off", "full"])
def test_credit_begins_at_the_first_step_at_which_an_action_can_show(deformation):
    """One action of many episodes is changed; draws are the same, so all else follows from it."""
    short = Setting.default().replace(support=5, cascade_target=3.0, delay=7, horizons=(90, 1, 1))
    changed, costs = 60, {}
    for method in ("SS", "DR", "PM-RNN", "PM-ST", "RAPO"):
        made = graph_run(method=method, nodes=40, setting=short)
        for constraint in resolve(made).constraints():
            assert costs.setdefault(constraint.key, constraint.lag) == constraint.lag
    told = []
    for other in (0, 2):
        env = resolve(made).environment(200, deformation=deformation)
        env.reset(seed=0)
        rows = []
        for t in range(85):
            info = env.step(np.full(200, other if t == changed else 0))[4]
            rows.append([info[key].copy() for key in costs])
        told.append(np.array(rows))
    differ = (told[0] != told[1]).any(axis=2)  # (steps, costs)
    assert dict(zip(costs, differ.argmax(axis=0) - changed, strict=True)) == costs
    assert set(costs) == {"cost", "cost_G", "cost_H"}


def test_only_the_trace_carries_a_share_of_itself_over_and_only_what_is_new_is_learned():
    """What the learner is told of the trace is the harm of the step before, alpha and scale."""
    made = graph_run(
        method="PM-ST", nodes=40, params=FieldParams(lam=0.3),
        setting=Setting.default().replace(
        support=5, cascade_target=3.0, delay=7, horizons=(90, 1, 1)
    ),
    )  # fmt: skip
    trace, scar = resolve(made).constraints()
    assert (trace.retained, scar.retained) == (0.7, 0.0)
    assert [c.retained for c in resolve(config("DR")).constraints()] == [0.0]
    env = resolve(made).environment(20)
    env.reset(seed=0)
    infos = [env.step(np.zeros(20, int))[4] for _ in range(60)]
    harm, G = (np.array([info[key] for info in infos]) for key in ("cost", "cost_G"))
    assert np.allclose(G[1:] - trace.retained * G[:-1], 0.5 * harm[:-1], atol=1e-5) and harm.any()


def test_budgets_are_shares_of_what_the_aggressive_action_costs_under_p0():
    made = config("PM-ST")
    unit = resolve(made).references()
    constraints = resolve(made).constraints()
    assert [(c.key, c.reference) for c in constraints] == [
        ("cost_G", unit["cost_G"]), ("cost_H", unit["cost_H"]),
    ]  # fmt: skip
    assert {c.budget for c in constraints} == {made.setting.budget}
    assert (
        unit == resolve(config("RAPO")).references()
    )  # one unit, whatever the method's own kernel
