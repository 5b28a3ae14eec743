"""Tasks: what their keys stand for, what they leave, and how damage is told."""

import json
from dataclasses import asdict, fields, replace

import numpy as np
import pandas as pd
import pytest
import torch

from rapo.agents import train as train_module
from rapo.agents.checkpoint import load_checkpoint
from rapo.agents.config import PPOConfig
from rapo.agents.resolve import resolve
from rapo.agents.run_config import RunConfig, graph_run
from rapo.cascade.setting import Setting
from rapo.paper import tasks as module
from rapo.paper.piece_content import curves_of
from rapo.paper.piece_folder import read_content
from rapo.paper.piece_reader import read_piece
from rapo.paper.pieces import write_piece
from rapo.paper.task import digest
from rapo.paper.tasks import Constant, Evaluate, Greedy, Guard, Train
from rapo.rsd.result import TRACES, RSDResult

SHORT = Setting.default().replace(horizons=(60, 20, 60), delay=10)
TINY = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)


def config(method="GE", updates=2, **changes):
    options = {"nodes": 40, "setting": SHORT, "ppo": TINY, "steps": updates * 256, **changes}
    return graph_run(method=method, **options)


def silent(share):
    pass


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with a trained GE and RAPO."""
    made = tmp_path_factory.mktemp("results")
    for method in ("GE", "RAPO"):
        Train(config(method)).run(made, silent)
    return made


@pytest.fixture
def piece(root, tmp_path):
    """An evaluation and a folder of its own with its piece."""
    task = Evaluate(Train(config()), "GE", episodes=3)
    if not task.done(root):
        task.run(root, silent)
    copy = task.piece(tmp_path)
    copy.parent.mkdir()
    copy.write_bytes(task.piece(root).read_bytes())
    return task, tmp_path


@pytest.fixture
def old(piece):
    """The same as version 0.1 wrote it."""
    task, folder = piece
    path = task.piece(folder)
    content = read_content(path)
    path.unlink()
    path.with_suffix(".json").write_text(json.dumps(content, allow_nan=True))
    return task, folder, path.with_suffix(".json")


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


def changed_configs():
    base = config()
    for name, value in {"method": "DR", "seed": 1, "steps": 513}.items():
        yield name, replace(base, **{name: value})
    for name, value in {"nodes": 41, "graph_seed": 1, "regions": "node", "fit": True}.items():
        yield name, base.with_env(**{name: value})
    for part in ("setting", "params", "ppo"):
        whole = asdict(getattr(base, part))
        for name, value in whole.items():
            made = type(getattr(base, part))(**{**whole, name: other(value)})
            changed = replace(base, ppo=made) if part == "ppo" else base.with_env(**{part: made})
            yield f"{part}.{name}", changed


def test_a_trainings_key_depends_on_every_value_and_on_nothing_else():
    keys = {name: Train(made).key for name, made in changed_configs()}
    assert len(keys) > 40
    own = Train(config()).key
    assert own not in keys.values()
    assert len(set(keys.values())) == len(keys)
    again = RunConfig.from_dict(json.loads(json.dumps(config().to_dict())))
    assert Train(again).key == own
    assert replace(config(), method="ge") == config()  # spelled otherwise, the same method


def test_an_evaluations_key_depends_on_every_value_and_on_nothing_else():
    base = Evaluate(Train(config("RAPO")), "RAPO")
    changes = {
        "policy": Train(config("RAPO", seed=1)), "method": "off@rep", "episodes": 21, "seed": 1,
        "coupled": True, "params": (("w_H", 4.0),), "options": (("deformation", "off"),),
        "threshold": 0.3,
    }  # fmt: skip
    assert {f.name for f in fields(Evaluate)} == {*changes, "label"}
    keys = {name: replace(base, **{name: value}).key for name, value in changes.items()}
    assert base.key not in keys.values()
    assert len(set(keys.values())) == len(changes)
    assert base.key == Evaluate(Train(config("RAPO")), "RAPO").key
    # the label names the piece; what it depends on is the same
    told = replace(base, label="ours")
    assert told.key.startswith("ours-n40-g0-s0-") and told.key[-10:] == base.key[-10:]
    one = replace(base, params=(("w_H", 4.0), ("eta", 0.1)))
    assert one.key == replace(base, params=(("eta", 0.1), ("w_H", 4.0))).key


def test_a_shields_key_depends_on_both_policies_and_the_episodes():
    ge, rapo = Train(config()), Train(config("RAPO"))
    base = Guard(ge, rapo)
    others = [
        Guard(Train(config(seed=1)), rapo),
        Guard(ge, Train(config("RAPO", seed=1))),
        Guard(ge, rapo, episodes=21),
    ]
    assert len({base.key, *(each.key for each in others)}) == 4
    assert base.needs == (ge, rapo) and base.config.method == "Shield-UM"


def test_a_constant_actions_key_depends_on_the_platform_and_not_on_training():
    own = Constant(config(), 1).key
    assert own.startswith("constant-moderate-n40-g0-")
    assert Constant(config(), 2).key != own
    idle = {"method", "seed", "steps"}
    for name, made in changed_configs():
        same = name in idle or name.startswith("ppo.")
        assert (Constant(made, 1).key == own) == same, name


def test_a_digest_is_of_the_values():
    assert digest({"b": 1, "a": (1, 2)}) == digest({"a": [1, 2], "b": 1}) == "3813f9409e"


# Training


def test_a_training_that_was_cut_goes_on_to_the_same_end(tmp_path, monkeypatch):
    monkeypatch.setattr(train_module, "SAVE_EVERY", 2)
    task, shares = Train(config("RAPO", updates=6)), []

    def cut(share):
        shares.append(share)
        if share > 0.7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        task.run(tmp_path / "cut", cut)
    assert not task.done(tmp_path / "cut")
    task.run(tmp_path / "cut", shares.append)
    assert task.done(tmp_path / "cut")
    assert np.allclose(np.array(shares) * 6, [1, 2, 3, 4, 5, 5, 6])  # from the checkpoint at 4 on
    task.run(tmp_path / "whole", silent)
    one, two = (
        load_checkpoint(task.checkpoint(tmp_path / name))["learner"]["weights"]
        for name in ("cut", "whole")
    )
    assert torch.equal(one, two)


# Pieces


def test_an_evaluation_leaves_one_piece(piece):
    task, folder = piece
    assert task.done(folder)
    assert [path.name for path in (folder / "pieces").iterdir()] == [f"{task.key}.parquet"]
    found = read_piece(task, folder)
    frame = found.frame
    assert frame[["method", "nodes", "graph_seed"]].to_numpy().tolist() == [["GE", 40, 0]] * 3
    assert frame["episode"].tolist() == [0, 1, 2]
    assert (frame["ReplayReturn"] > 0).all() and (frame["peak_replay"] >= 1).all()
    laws = [frame[f"action{a}_replay"] for a in range(3)]
    assert np.allclose(sum(laws), 1, atol=1e-5)
    assert found.curves["step"].tolist() == list(range(0, 140, 10))
    assert found.curves["end"].tolist() == list(range(10, 150, 10))
    # what ratios are made of agrees with the ratios
    assert np.allclose(frame["RAG"], frame["peak_replay"] / frame["peak_exposure"], rtol=1e-4)
    assert np.allclose(frame["AUC_R"], frame["reach_replay"] / frame["reach_exposure"], rtol=1e-4)
    content = found.content
    assert content["spec"] == task.spec and content["shield"] is None
    assert content["graph_hash"] == resolve(config()).graph_hash
    assert content["training"]["steps"] == 512


def test_a_piece_is_written_at_once_or_not_at_all(root, tmp_path, monkeypatch):
    task = Evaluate(Train(config()), "GE", episodes=2, seed=5)
    folder = tmp_path / "work"
    folder.symlink_to(root / "work")

    def full_disk(text, *args, **kwargs):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(module.Path, "replace", full_disk)
        with pytest.raises(OSError, match="no space"):
            task.run(tmp_path, silent)
    assert not task.done(tmp_path)  # nor does what was left count as a piece
    (left,) = (tmp_path / "pieces").iterdir()
    assert left.suffix == ".part"
    task.run(tmp_path, silent)
    assert len(read_piece(task, tmp_path).frame) == 2
    assert [path.suffix for path in (tmp_path / "pieces").iterdir()] == [".parquet"]


def shorter(text):
    content = json.loads(text)
    content["episodes"] = {name: column[:2] for name, column in content["episodes"].items()}
    return json.dumps(content)


def ragged(text):
    content = json.loads(text)
    content["episodes"]["RAG"].pop()
    return json.dumps(content)


def of_another(text):
    return json.dumps({**json.loads(text), "key": "GE-n40-g0-s0-0000000000"})


def without(*path):
    """Damage that removes one value."""

    def damage(text):
        content = json.loads(text)
        part = content
        for name in path[:-1]:
            part = part[name]
        del part[path[-1]]
        return json.dumps(content)

    return damage


def having(**changes):
    """Damage that puts other values in."""
    return lambda text: json.dumps({**json.loads(text), **changes})


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2], lambda text: "", lambda text: "null",
        lambda text: "[]", lambda text: '{"key": "x"}', lambda text: "{'a': 1}",
        lambda text: json.dumps({**json.loads(text), "curves": 3}), ragged, shorter, of_another,
    ],
)  # fmt: skip
def test_a_damaged_piece_is_named_with_the_remedy(old, damage):
    task, folder, path = old
    path.write_text(damage(path.read_text()))
    with pytest.raises(ValueError, match="is damaged") as caught:
        read_piece(task, folder)
    assert str(path) in str(caught.value)
    assert "remove it and run again" in str(caught.value)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (without("key"), "not 3 episodes of GE-"),
        (without("seconds"), "seconds must be a number, got None"),
        (having(seconds="3.0"), "seconds must be a number, got '3.0'"),
        (without("episodes"), "episodes must be an object, got None"),
        (without("curves"), "curves must be an object, got None"),
        (having(curves=[]), r"curves must be an object, got \[\]"),
        (having(training=[1]), r"training must be an object or null, got \[1\]"),
        (having(training={"seconds": "long"}), "seconds of training must be a number, got 'long'"),
        (having(shield=0.3), "shield must be an object or null, got 0.3"),
        *((without("episodes", name), f"no column {name}") for name in
          ("RAG", "AUC_R", "SM_R", "ReplayReturn", "OddsRatio")),
    ],
)  # fmt: skip
def test_a_partly_damaged_piece_is_named_with_what_is_wrong(old, damage, told):
    task, folder, path = old
    path.write_text(damage(path.read_text()))
    with pytest.raises(ValueError, match=rf"is damaged \({told}") as caught:
        read_piece(task, folder)
    assert str(path) in str(caught.value)
    assert "remove it and run again" in str(caught.value)


def test_a_column_of_words_is_damage(old):
    task, folder, path = old
    content = json.loads(path.read_text())
    content["episodes"]["SM_R"][1] = "much"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"is damaged \(SM_R must be a number, got 'much'"):
        read_piece(task, folder)


def test_a_piece_may_lack_what_no_table_needs(old):
    task, folder, path = old
    for name in ("training", "shield", "version"):
        path.write_text(without(name)(path.read_text()))
    assert len(read_piece(task, folder).frame) == 3


def test_a_missing_piece_is_named_with_the_command(piece):
    task, folder = piece
    task.piece(folder).unlink()
    with pytest.raises(ValueError, match="is missing; rapo reproduce") as caught:
        read_piece(task, folder)
    assert str(task.piece(folder)) in str(caught.value) and f"--out {folder}" in str(caught.value)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ('{"preset": "paper"}', "all --preset paper --out"),
        ("{", "all --out"),
        ("[]", "all --out"),
        ('{"preset": 3}', "all --out"),
    ],
)
def test_the_command_for_a_missing_piece_has_the_folders_preset(tmp_path, manifest, words):
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(ValueError, match=f"rapo reproduce {words} {tmp_path} makes it"):
        read_piece(Evaluate(Train(config()), "GE"), tmp_path)


def test_undefined_values_survive_a_piece(piece):
    task, folder = piece
    content = read_content(task.piece(folder))
    content["episodes"]["OddsRatio"] = np.array([np.nan, 1 / 3, 2.0])
    content["episodes"]["RAG"] = [None, None, None]
    write_piece(task.piece(folder), content)
    frame = read_piece(task, folder).frame
    assert np.isnan(frame["OddsRatio"][0]) and frame["OddsRatio"][1:].tolist() == [0.333333, 2.0]
    assert frame["RAG"].isna().all() and frame["RAG"].dtype == np.float64


def test_changed_fields_and_options_reach_the_environment(root):
    rapo = Train(config("RAPO"))
    runs = {
        name: Evaluate(rapo, "RAPO", episodes=3, label=name, **changes)
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
    for task in runs.values():
        task.run(root, silent)
    frames = {
        name: read_piece(task, root).frame.drop(columns="method") for name, task in runs.items()
    }
    pd.testing.assert_frame_equal(frames["right"], frames["plain"])
    assert not frames["wrong"]["ScarMass"].equals(frames["plain"]["ScarMass"])
    assert frames["wrong"]["seed"].equals(frames["plain"]["seed"])
    assert np.allclose(frames["off"]["OddsRatio"], 1) and frames["plain"]["OddsRatio"].mean() < 1
    assert frames["weak"]["OddsRatio"].mean() > frames["plain"]["OddsRatio"].mean()
    pd.testing.assert_frame_equal(frames["heard"], frames["plain"])
    assert (frames["unheard"]["ScarMass"] == 0).all() and np.allclose(
        frames["unheard"]["OddsRatio"], 1
    )


def test_a_shields_piece_tells_threshold_and_compute(root):
    ge = Train(config())
    task = Evaluate(ge, "Shield", episodes=2, threshold=0.3)
    task.run(root, silent)
    told = read_piece(task, root).content["shield"]
    assert told["threshold"] == 0.3 and told["tuning"] is None
    assert told["reference"] == pytest.approx(resolve(config()).references()["sensitive_mass"])
    assert told["transitions_per_step"] == 16 * 100 * 3
    content = read_content(task.piece(root))
    del content["shield"]["transitions_per_step"]
    write_piece(task.piece(root), content)
    with pytest.raises(ValueError, match=r"is damaged \(transitions_per_step of shield must be"):
        read_piece(task, root)
    guard = Guard(ge, Train(config("RAPO")), episodes=2)
    assert not guard.done(root)
    guard.run(root, silent)
    assert guard.done(root)
    matched = Evaluate(guard, "Shield-UM", episodes=2)
    matched.run(root, silent)
    found = read_piece(matched, root)
    told = found.content["shield"]
    assert told["threshold"] == pytest.approx(
        load_checkpoint(guard.checkpoint(root))["shield"]["threshold"]
    )
    assert set(told["tuning"]) == {"threshold", "ReplayRet", "target"}
    assert 1 <= len(told["tuning"]["threshold"]) <= 12
    assert (found.frame["method"] == "Shield-UM").all()


def test_a_constant_action_is_evaluated_without_training(tmp_path):
    tasks = [Evaluate(Constant(config(), a), "GE", episodes=3, label=f"a{a}") for a in range(3)]
    frames = []
    for action, task in enumerate(tasks):
        assert task.needs == ()
        task.run(tmp_path, silent)
        found = read_piece(task, tmp_path)
        frames.append(found.frame)
        assert (found.frame[f"action{action}_replay"] == 1).all()
        assert np.allclose(found.frame["OddsRatio"].dropna(), 1)  # GE's kernel: P0
        assert found.content["training"] is None and found.content["shield"] is None
    assert frames[0]["seed"].equals(frames[2]["seed"])
    served = [frame["served_replay"].mean() for frame in frames]
    assert served == sorted(served, reverse=True)
    assert not (tmp_path / "work").exists()


def test_greedy_is_evaluated_without_training_in_front_of_rapos_kernel(tmp_path):
    greedy = Evaluate(Greedy(config("RAPO")), "RAPO", episodes=2, label="greedy")
    fixed = Evaluate(Constant(config("RAPO"), 0), "RAPO", episodes=2, label="fixed")
    assert greedy.needs == () and greedy.policy.key != fixed.policy.key
    assert Greedy(config("RAPO", updates=9)).key == greedy.policy.key  # nothing is trained
    assert Greedy(config("RAPO", graph_seed=1)).key != greedy.policy.key
    for task in (greedy, fixed):
        task.run(tmp_path, silent)
    found = read_piece(greedy, tmp_path)
    assert found.content["training"] is None
    assert found.frame["seed"].equals(read_piece(fixed, tmp_path).frame["seed"])
    curve, steps = found.curves["cost_G"], found.curves["end"] - found.curves["step"]
    mean = (curve * steps).sum() / steps.sum()
    assert found.frame["trace"].mean() == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize("wrong", [{"method": "Shield"}, {"method": "GE", "threshold": 0.5}])
def test_no_shield_guards_a_constant_action(tmp_path, wrong):
    with pytest.raises(ValueError, match="no shield guards a constant action"):
        Evaluate(Constant(config(), 0), episodes=2, **wrong).run(tmp_path, silent)
    assert not (tmp_path / "pieces").exists()


# Curves


def test_curves_by_hand():
    phase = np.repeat([0, 1, 2], [23, 5, 12])
    rng = np.random.default_rng(0)
    traces = {name: rng.normal(size=(4, 40)).astype(np.float32) for name in TRACES}
    odds = traces["odds_ratio"]
    odds[0, 3] = np.nan  # one step of a bin
    odds[1:, 10:20] = np.nan  # all but one episode
    odds[:, 23:28] = np.nan  # a whole phase
    result = RSDResult(frame=pd.DataFrame({"episode": range(4)}), traces=traces, phase=phase)
    found = curves_of(result)
    bins = [(0, 10), (10, 20), (20, 23), (23, 28), (28, 38), (38, 40)]
    assert found["step"].tolist() == [a for a, _ in bins]
    assert found["end"].tolist() == [b for _, b in bins]
    for name in TRACES:
        for i, (a, b) in enumerate(bins):
            means = []
            for row in traces[name]:
                known = [float(v) for v in row[a:b] if not np.isnan(v)]
                if known:
                    means.append(sum(known) / len(known))
            if not means:
                assert name == "odds_ratio" and a == 23 and np.isnan(found[name][i])
                continue
            mean = sum(means) / len(means)
            spread = sum((m - mean) ** 2 for m in means) / max(1, len(means) - 1)
            assert found[name][i] == pytest.approx(mean, rel=1e-9)
            assert found[f"{name}_std"][i] == pytest.approx(spread**0.5, rel=1e-9, abs=1e-12)
    assert found["odds_ratio_std"][1] == 0  # one episode has no spread
