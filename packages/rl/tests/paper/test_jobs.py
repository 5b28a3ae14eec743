"""Jobs: what their keys stand for, what they leave, and that a cut one goes on."""

import json
from dataclasses import asdict, fields, replace

import numpy as np
import pandas as pd
import pytest

from rapo.agents import train as train_module
from rapo.agents.config import PPOConfig
from rapo.agents.resolve import resolve
from rapo.agents.run_config import RunConfig, graph_run
from rapo.agents.saved_run import load_run, load_state
from rapo.cascade.setting import ACTIONS, Setting
from rapo.jobs.lock import locked
from rapo.jobs.tables import job_table, read_table
from rapo.paper import jobs as module
from rapo.paper.jobs import GREEDY, Evaluation, Policy, PolicyJob, jobs_of

SHORT = Setting.default().replace(horizons=(60, 20, 60), delay=10)
TINY = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)


def config(method="GE", updates=2, **changes):
    options = {"nodes": 40, "setting": SHORT, "ppo": TINY, "steps": updates * 256, **changes}
    return graph_run(method=method, **options)


def trained(method="GE", updates=2, **changes):
    return Policy(config(method, updates, **changes))


def run(root, *evaluations):
    """Run the jobs of evaluations."""
    for job in jobs_of(evaluations):
        for need in job.needs:
            need.run(root)
        job.run(root)


def frame_of(root, evaluation, name="episodes"):
    frame = job_table(root, evaluation.policy.key, name)
    return frame[frame["evaluation"] == evaluation.key].drop(columns="evaluation")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with a trained GE and RAPO."""
    made = tmp_path_factory.mktemp("results")
    for method in ("GE", "RAPO"):
        PolicyJob(trained(method)).run(made)
    return made


# Keys


def other(value):
    """A value of the same kind that is not the same."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value * 2 or 1
    if isinstance(value, float):
        return value * 0.99 or 0.01
    if isinstance(value, tuple):
        return (other(value[0]), *value[1:])
    return {"ball": "split", "split": "ball", "contact": "outbreak"}.get(value, "grid:3")


def own_harm(sets, actions):
    """A harm function in place of the paper's."""
    return 0.0


def changed_configs():
    base = config()
    for name, value in {"method": "DR", "seed": 1, "steps": 513}.items():
        yield name, replace(base, **{name: value})
    for name, value in {"nodes": 41, "graph_seed": 1, "regions": "node", "fit": True}.items():
        yield name, base.with_env(**{name: value})
    for part in ("setting", "params", "ppo"):
        whole = asdict(getattr(base, part))
        for name, value in whole.items():
            changed = own_harm if name == "harm" else other(value)
            made = type(getattr(base, part))(**{**whole, name: changed})
            changed = replace(base, ppo=made) if part == "ppo" else base.with_env(**{part: made})
            yield f"{part}.{name}", changed


def test_a_policys_key_depends_on_every_value_and_on_nothing_else():
    keys = {name: Policy(made).key for name, made in changed_configs()}
    assert len(keys) > 40
    own = trained().key
    assert own not in keys.values()
    assert len(set(keys.values())) == len(keys)
    again = RunConfig.from_dict(json.loads(json.dumps(config().to_dict())))
    assert Policy(again).key == own
    assert replace(config(), method="ge") == config()  # spelled otherwise, the same method


def test_an_evaluations_key_depends_on_every_value_but_the_label():
    base = Evaluation(trained("RAPO"), "RAPO")
    changes = {
        "method": "off@rep", "episodes": 21, "params": (("w_H", 4.0),),
        "options": (("deformation", "off"),), "threshold": 0.3,
    }  # fmt: skip
    assert {f.name for f in fields(Evaluation)} == {*changes, "policy", "label"}
    keys = {name: replace(base, **{name: value}).key for name, value in changes.items()}
    assert base.key == "RAPO episodes=20" and len({base.key, *keys.values()}) == 6
    assert replace(base, label="ours").key == base.key
    one = replace(base, params=(("w_H", 4.0), ("eta", 0.1)))
    assert one.key == replace(base, params=(("eta", 0.1), ("w_H", 4.0))).key


def test_a_tuned_shield_needs_the_two_policies_of_its_graph():
    shield = trained("Shield-UM")
    assert [job.policy for job in PolicyJob(shield).needs] == [trained("GE"), trained("RAPO")]
    assert trained("Shield-UM", seed=1).key != shield.key
    assert PolicyJob(trained("GE")).needs == ()


def test_an_untrained_policys_key_depends_on_the_platform_and_not_on_training():
    own = Policy(config(), "moderate").key
    assert own.startswith("moderate-n40-g0-")
    assert len({Policy(config(), name).key for name in (*ACTIONS, GREEDY)}) == 4
    idle = {"method", "seed", "steps"}
    for name, made in changed_configs():
        same = name in idle or name.startswith("ppo.")
        assert (Policy(made, "moderate").key == own) == same, name


def test_a_config_is_hashed_once(monkeypatch):
    calls, digest = [], module.digest
    monkeypatch.setattr(module, "digest", lambda values: calls.append(1) or digest(values))
    for _ in range(3):
        assert trained("RAPO", seed=77).key.startswith("RAPO-n40-g0-s77-")
    assert len(calls) == 1


def test_a_policy_that_several_studies_evaluate_is_one_job():
    ge, rapo = trained("GE"), trained("RAPO")
    wanted = [Evaluation(rapo, "RAPO"), Evaluation(ge, "GE"), Evaluation(rapo, "off@rep"),
              Evaluation(trained("RAPO"), "RAPO", label="again")]  # fmt: skip
    jobs = jobs_of(wanted)
    assert [job.key for job in jobs] == [rapo.key, ge.key]
    assert jobs[0].evaluations == (wanted[0], wanted[2])


# Training


def test_a_training_that_was_cut_goes_on_to_the_same_end(tmp_path, monkeypatch):
    monkeypatch.setattr(train_module, "SAVE_EVERY", 2)
    job, updates = PolicyJob(trained("RAPO", updates=6)), []
    iterate = train_module.PPO.iterate

    def cut(learner):
        if len(updates) == 5 and not (tmp_path / "again").exists():
            raise KeyboardInterrupt
        updates.append(learner.updates)
        return iterate(learner)

    monkeypatch.setattr(train_module.PPO, "iterate", cut)
    with pytest.raises(KeyboardInterrupt):
        job.run(tmp_path / "cut")
    assert not job.done(tmp_path / "cut")
    (tmp_path / "again").touch()
    job.run(tmp_path / "cut")
    assert job.done(tmp_path / "cut")
    assert updates == [0, 1, 2, 3, 4, 4, 5]  # from what was saved at 4 on
    job.run(tmp_path / "whole")
    one, two = (
        load_state(job.policy.folder(tmp_path / name))["weights"] for name in ("cut", "whole")
    )
    assert np.array_equal(one, two)


# What a job leaves


def test_a_job_leaves_frames(root):
    evaluation = Evaluation(trained(), "GE", episodes=3)
    job = PolicyJob(evaluation.policy, (evaluation,))
    run(root, evaluation)
    assert job.done(root)
    frame, curves = (frame_of(root, evaluation, name) for name in ("episodes", "curves"))
    assert frame["episode"].tolist() == [0, 1, 2]
    assert (frame["ReplayReturn"] > 0).all() and (frame["peak_replay"] >= 1).all()
    probs = [frame[f"action{a}_replay"] for a in range(3)]
    assert np.allclose(sum(probs), 1, atol=1e-5)
    assert curves["step"].tolist() == list(range(0, 140, 10))
    assert curves["end"].tolist() == list(range(10, 150, 10))
    # what ratios are made of agrees with the ratios
    assert np.allclose(frame["RAG"], frame["peak_replay"] / frame["peak_exposure"], rtol=1e-4)
    assert np.allclose(frame["AUC_R"], frame["reach_replay"] / frame["reach_exposure"], rtol=1e-4)
    assert (root / "jobs" / job.key / "run" / "summary.json").exists()


def test_a_job_that_was_cut_makes_only_the_evaluations_that_are_missing(root, monkeypatch):
    first, second, third = (Evaluation(trained("RAPO"), "RAPO", episodes=n) for n in (2, 4, 5))
    measured, measure = [], Evaluation.measure

    def cut(evaluation, *words):
        if evaluation == third and third not in measured:
            measured.append(third)
            raise OSError("no space left")
        measured.append(evaluation)
        return measure(evaluation, *words)

    monkeypatch.setattr(Evaluation, "measure", cut)
    with pytest.raises(OSError, match="no space"):
        run(root, first, second, third)
    (job,) = jobs_of([first, second, third])
    assert job.missing(root) == [third] and not job.done(root)
    before = frame_of(root, first)
    run(root, first, second, third)
    assert measured == [first, second, third, third] and job.done(root)
    pd.testing.assert_frame_equal(frame_of(root, first), before)
    assert len(frame_of(root, third)) == 5


def test_rows_of_an_evaluation_that_was_cut_while_writing_are_replaced(tmp_path, write_result):
    evaluation = Evaluation(trained(), "GE", episodes=2)
    for value in (1.0, 2.0):
        write_result(tmp_path, evaluation, {"RAG": [value, value]})
    assert frame_of(tmp_path, evaluation)["RAG"].tolist() == [2.0, 2.0]


def test_a_policy_that_finished_frames_do_not_need_is_not_trained_again(root, tmp_path):
    evaluation = Evaluation(trained(), "GE", episodes=3)
    run(root, evaluation)
    (job,) = jobs_of([evaluation])
    folder = tmp_path / "jobs" / job.key
    folder.mkdir(parents=True)
    path = root / "jobs" / job.key / "evaluations.parquet"
    (folder / path.name).write_bytes(path.read_bytes())
    assert job.done(tmp_path) and not PolicyJob(job.policy).done(tmp_path)


def test_a_job_that_another_process_runs_is_refused(tmp_path):
    job = PolicyJob(trained())
    held = locked(job.folder(tmp_path), "the other one")
    with held, pytest.raises(ValueError, match="in use by the other one"):
        job.run(tmp_path)


def test_changed_fields_and_options_reach_the_environment(root):
    rapo = trained("RAPO")
    evaluations = {
        name: Evaluation(rapo, "RAPO", episodes=3, **changes)
        for name, changes in {
            "plain": {},
            "right": {"options": (("misattribute", "0"),)},
            "wrong": {"options": (("misattribute", "1"),)},
            "off": {"options": (("deformation", "off"),)},
            "weak": {"params": (("w_H", 0.05),)},
            "heard": {"options": (("lost", "0"), ("spread", "0"))},
            "unheard": {"options": (("lost", "1"),)},
        }.items()
    }
    run(root, *evaluations.values())
    frames = {
        name: frame_of(root, each).reset_index(drop=True) for name, each in evaluations.items()
    }
    pd.testing.assert_frame_equal(frames["right"], frames["plain"])
    assert not frames["wrong"]["ScarMass"].equals(frames["plain"]["ScarMass"])
    assert frames["wrong"]["seed"].equals(frames["plain"]["seed"])
    assert np.allclose(frames["off"]["OddsRatio"], 1) and frames["plain"]["OddsRatio"].mean() < 1
    assert frames["weak"]["OddsRatio"].mean() > frames["plain"]["OddsRatio"].mean()
    pd.testing.assert_frame_equal(frames["heard"], frames["plain"])
    assert (frames["unheard"]["ScarMass"] == 0).all()
    assert np.allclose(frames["unheard"]["OddsRatio"], 1)


def test_a_shields_threshold_compute_and_tuning_are_in_the_frames(root, monkeypatch):
    monkeypatch.setattr(module, "TUNING_EPISODES", 2)
    fixed = Evaluation(trained(), "Shield", episodes=2, threshold=0.3)
    matched = Evaluation(trained("Shield-UM"), "Shield-UM", episodes=2)
    run(root, fixed, matched)
    about = frame_of(root, fixed, "evaluations").iloc[0]
    assert about["threshold"] == pytest.approx(0.3)
    assert about["reference"] == pytest.approx(resolve(config()).references()["sensitive_mass"])
    assert about["transitions_per_step"] == 16 * 100 * 3
    folder = root / "jobs" / matched.policy.key
    tuned = load_run(matched.policy.folder(root)).shield["threshold"]
    assert frame_of(root, matched, "evaluations")["threshold"].iloc[0] == pytest.approx(tuned)
    trials = read_table(folder / "tuning.parquet")
    assert list(trials) == ["threshold", "ReplayRet", "target"] and 1 <= len(trials) <= 12


def test_a_constant_action_is_evaluated_without_training(tmp_path):
    evaluations = [Evaluation(Policy(config(), name), "GE", episodes=3) for name in ACTIONS]
    run(tmp_path, *evaluations)
    frames = [frame_of(tmp_path, each) for each in evaluations]
    for action, frame in enumerate(frames):
        assert (frame[f"action{action}_replay"] == 1).all()
        assert np.allclose(frame["OddsRatio"].dropna(), 1)  # GE's kernel: P0
    assert frames[0]["seed"].equals(frames[2]["seed"])
    served = [frame["served_replay"].mean() for frame in frames]
    assert served == sorted(served, reverse=True)
    assert not list(tmp_path.rglob("training.parquet")) and not list(tmp_path.rglob("run"))


def test_an_untrained_policy_is_one_job_under_the_kernels_of_two_methods(tmp_path):
    stationary, deformed = (
        Evaluation(Policy(config(method), "aggressive"), method, episodes=2)
        for method in ("GE", "RAPO")
    )
    assert len(jobs_of([stationary, deformed])) == 1
    run(tmp_path, stationary, deformed)
    assert np.allclose(frame_of(tmp_path, stationary)["OddsRatio"].dropna(), 1)
    assert frame_of(tmp_path, deformed)["OddsRatio"].mean() < 1


def test_greedy_is_evaluated_without_training_in_front_of_rapos_kernel(tmp_path):
    greedy, fixed = (
        Evaluation(Policy(config("RAPO"), name), "RAPO", episodes=2)
        for name in (GREEDY, "moderate")
    )
    assert Policy(config("RAPO", updates=9), GREEDY).key == greedy.policy.key  # nothing is trained
    run(tmp_path, greedy, fixed)
    frame, curves = (frame_of(tmp_path, greedy, name) for name in ("episodes", "curves"))
    assert frame["seed"].equals(frame_of(tmp_path, fixed)["seed"])
    steps = curves["end"] - curves["step"]
    mean = (curves["cost_G"] * steps).sum() / steps.sum()
    assert frame["trace"].mean() == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize("wrong", [{"method": "Shield"}, {"method": "GE", "threshold": 0.5}])
def test_no_shield_guards_an_untrained_policy(tmp_path, wrong):
    with pytest.raises(ValueError, match="no shield guards an untrained policy"):
        run(tmp_path, Evaluation(Policy(config(), "moderate"), episodes=2, **wrong))
    assert not list(tmp_path.rglob("*.parquet"))
