"""The suite from its words to the scorecard, on feed and routing with generated data."""

import json
import shutil
import sys
from contextlib import nullcontext
from dataclasses import replace

import gymnasium
import numpy as np
import pandas as pd
import pytest

from rapo import FieldParams, cli
from rapo.agents import PlatformConfig, PPOConfig
from rapo.agents.train import train
from rapo.paper import reproduce, schedule
from rapo.policies import ConstantPolicy
from rapo.rsd import evaluate
from rapo.rsd.pooled import POOLED, totals
from rapo.suite import command, piece, sizes
from rapo.suite.command import report_suite, run_suite
from rapo.suite.demands import BARS, bars
from rapo.suite.domains import DOMAINS, chosen_domains
from rapo.suite.measure import CONSTANT, Measure
from rapo.suite.policies import Given
from rapo.suite.rows import METRICS
from rapo.suite.sizes import Size

TINY = Size("tiny", (0, 1), 2, (70, 20, 70))
KERNELS = ["off (P0)", "RAPO", "off@rep", "trace alone"]


@pytest.fixture(scope="module")
def here():
    """Tasks run in this process, with a preset of seconds."""

    ran = []

    class Now(schedule.LocalEngine):
        def submit(self, task, root):
            ran.append(task.key)
            task.run(root, lambda share: None)
            return task

        def collect(self, handles, timeout):
            return [(handle, None) for handle in handles]

        def news(self):
            return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sizes.SIZES, "tiny", TINY)
        patch.setitem(sizes.SIZES, "one", replace(TINY, name="one", seeds=(0,)))
        patch.setattr(reproduce, "make_engine", lambda name, jobs: nullcontext(Now(None, 1, None)))
        yield ran


@pytest.fixture(scope="module")
def made(here, tmp_path_factory):
    out = tmp_path_factory.mktemp("suite") / "out"
    cards = run_suite("feed,routing", "tiny", out, stand_in=True, jobs=1)
    return out, cards


def test_every_kernel_and_constant_has_a_row(made):
    out, _ = made
    table = pd.read_csv(out / "suite.csv")
    for name, actions in (("feed", 5), ("routing", 4)):
        rows = table[table["domain"] == name]
        baselines = [baseline.name for baseline in DOMAINS[name].baselines]
        assert rows["kernel"].tolist() == [*KERNELS, *baselines, *[CONSTANT] * actions]
        assert rows[rows["kernel"] == CONSTANT]["action"].tolist() == list(range(actions))
        assert set(rows["data"]) == {"stand-in"} and set(rows["platforms"]) == {2}
    assert set(METRICS) <= set(table) and {f"bar_{name}" for name in BARS} <= set(table)


def test_the_numbers_are_those_of_a_direct_evaluation(made):
    out, _ = made
    table = pd.read_csv(out / "suite.csv")
    domain = DOMAINS["routing"]

    def direct(off=False, **options):
        """Pooled ratios by metric."""
        found = [
            evaluate(
                domain.make(seed, True, **options), ConstantPolicy(1, 4), 2, 1000 * seed, True,
                horizons=TINY.horizons, off_at_replay=off, against_P0=True,
            )
            for seed in TINY.seeds
        ]  # fmt: skip
        parts = {m: np.array([totals(one, m) for one in found]).sum(axis=(0, 2)) for m in POOLED}
        return {metric: after / before for metric, (after, before) in parts.items()}

    found = evaluate(
        domain.make(1, True), ConstantPolicy(1, 4), 2, 1000, True, horizons=TINY.horizons
    )
    content = piece.read(next((out / "pieces").glob("routing-1-*.parquet")))
    ours = next(run for run in content["runs"] if run["kernel"] == "RAPO")
    assert ours["sensitive_mass"] == found.of_phase("sensitive_mass", 2).sum(axis=1).tolist()
    options = {
        "RAPO": {}, "off@rep": {"off": True}, "trace alone": {"params": FieldParams(eta=0)},
        "route-flap damping": {"kernel": "damping"}, "off (P0)": {"deformation": "off"},
    }  # fmt: skip
    for kernel, chosen in options.items():
        row = table[(table["domain"] == "routing") & (table["kernel"] == kernel)].iloc[0]
        for metric, value in direct(**chosen).items():
            assert row[metric] == pytest.approx(value, rel=1e-5), (kernel, metric)


def test_the_default_action_is_a_point_of_the_frontier(made):
    out, _ = made
    table = pd.read_csv(out / "suite.csv")
    for name in ("feed", "routing"):
        rows = table[table["domain"] == name]
        same = rows[(rows["kernel"] == CONSTANT) & (rows["action"] == DOMAINS[name].action)]
        for metric in ("SM_vs_P0", "Reach_vs_P0", "ReturnKept"):
            assert same[metric].item() == 1
        off = rows[rows["kernel"] == "off (P0)"]
        for metric in ("return", "sensitive_mass"):  # though its Exposure was not run
            assert same[metric].item() == off[metric].item() > 0
        other = rows[(rows["kernel"] == CONSTANT) & (rows["action"] == 0)]
        assert other["return"].item() != same["return"].item()


def test_off_at_replay_restores_exactly(made):
    out, cards = made
    table = pd.read_csv(out / "suite.csv")
    assert (table[table["kernel"] == "off@rep"]["SM_vs_P0"] == 1).all()
    assert all(b.holds for card in cards for b in card.bars if b.name == "restored")


def test_the_page_holds_everything_and_says_what_the_data_are(made):
    out, cards = made
    page = (out / "scorecard.html").read_text()
    assert page.count("stand-in") >= 2 and "GENERATED DATA" in page
    assert page.count("data:image/png;base64,") == 1 and "http" not in page.split("<body>")[1]
    missed = [bar for card in cards for bar in card.bars if not bar.holds]
    assert page.count("MISSED</td>") == 2 * len(missed)  # in the matrix, and below in its domain
    assert (out / "scorecard.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_there_is_not_run_again(made, here):
    out, _ = made
    pieces = sorted((out / "pieces").iterdir())
    before = {path: piece.read(path)["runs"] for path in pieces}
    table = (out / "suite.csv").read_bytes()
    pieces[-1].unlink()
    here.clear()
    run_suite("routing", "tiny", out, stand_in=True, jobs=1)
    assert here == [pieces[-1].stem]
    assert (out / "suite.csv").read_bytes() == table
    assert {path: piece.read(path)["runs"] for path in pieces} == before


def test_a_piece_comes_back_as_it_went_and_json_of_the_first_suites_is_read(tmp_path):
    runs = [
        {"kernel": "RAPO", "reach": [1.0, 0.1 + 0.2], "RAG": {"replay": [2.0, 5e-324]},
         "ASD": [None, None]},
        {"kernel": "constant", "action": 3, "reach": [7.0, 8.0]},
    ]  # fmt: skip
    content = {"format": 1, "key": "k", "about": {"nodes": 5, "words": ["a"]}, "runs": runs}
    piece.write(tmp_path / "pieces" / "k.parquet", content)
    assert piece.read(piece.piece_path(tmp_path, "k")) == content
    (tmp_path / "pieces" / "old.json").write_text(json.dumps(content))
    assert piece.read(piece.piece_path(tmp_path, "old")) == content
    assert piece.piece_path(tmp_path, "new").name == "new.parquet"


def test_domains_add_up_and_one_that_is_not_finished_is_told(made, here, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(made[0], out)
    manifest = json.loads((out / "manifest.json").read_text())
    del manifest["domains"]["feed"]
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert [card.domain.name for card in report_suite(out)] == ["routing"]
    here.clear()
    cards = run_suite("feed", "tiny", out, stand_in=True, jobs=1)
    assert [card.domain.name for card in cards] == ["feed", "routing"] and here == []
    next((out / "pieces").glob("feed-*")).unlink()
    assert [card.domain.name for card in report_suite(out)] == ["routing"]
    assert "Not finished yet: feed" in (out / "scorecard.html").read_text()


def test_a_report_is_made_from_the_pieces_alone(made):
    out, _ = made
    before = (out / "suite.csv").read_bytes()
    (out / "suite.csv").unlink()
    report_suite(out)
    assert (out / "suite.csv").read_bytes() == before


def rapo(monkeypatch, capsys, *words):
    """Exit code and what the command said."""
    monkeypatch.setattr(sys, "argv", ["rapo", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code, capsys.readouterr().err


WRONG = {
    "domain": (["--domains", "feed,roads"], "roads"),
    "preset": (["--preset", "huge"], "huge"),
    "engine": (["--engine", "cloud"], "cloud"),
    "jobs": (["--jobs", "0"], "0"),
    "no such file": (["--policy", "nowhere/checkpoint.pt"], "nowhere"),
    "no such module": (["--policy", "nowhere:policy"], "nowhere"),
    "words": (["--policy", "bold"], "bold"),
    "actions": (["--policy", "suite_policies:ninth", "--domains", "routing"], "0..3"),
    "class": (["--policy", "suite_policies:Bold", "--domains", "routing"], "Bold"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_words_end_with_one_line_and_nothing_is_written(
    wrong, here, tmp_path, monkeypatch, capsys
):
    (tmp_path / "suite_policies.py").write_text(
        "def ninth(x):\n    return 9\n\n\nclass Bold:\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    words, named = WRONG[wrong]
    code, said = rapo(
        monkeypatch, capsys, "suite", "run", "--preset", "tiny", "--stand-in",
        "--domains", "routing", "--out", tmp_path / "out", *words,
    )  # fmt: skip
    assert code == 2 and named in said and len(said.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("domain", ["feed", "routing", "warehouse"])
def test_missing_data_are_refused(domain, here, tmp_path, monkeypatch):
    monkeypatch.setenv("RAPO_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="--stand-in"):
        run_suite(domain, "tiny", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_refused(made, here, tmp_path):
    out, _ = made
    before = (out / "suite.csv").read_bytes()
    with pytest.raises(ValueError, match="preset"):
        run_suite("routing", "smoke", out, stand_in=True)
    assert (out / "suite.csv").read_bytes() == before
    (tmp_path / "suite.csv").write_text("mine")
    with pytest.raises(ValueError, match=r"suite\.csv"):
        run_suite("routing", "tiny", tmp_path, stand_in=True)
    assert (tmp_path / "suite.csv").read_text() == "mine"
    with pytest.raises(ValueError, match="no suite"):
        report_suite(tmp_path)


def test_a_policy_of_ones_own_is_scored(here, tmp_path, monkeypatch):
    (tmp_path / "scored_by_suite.py").write_text("def widest(x):\n    return 3\n")
    monkeypatch.chdir(tmp_path)
    (card,) = run_suite(
        "routing", "one", tmp_path / "out", policy="scored_by_suite:widest", stand_in=True
    )
    rows = card.rows
    own = rows[rows["kernel"] == "off (P0)"].iloc[0]
    widest = rows[(rows["kernel"] == CONSTANT) & (rows["action"] == 3)].iloc[0]
    assert own["return"] == widest["return"] != rows[rows["action"] == 0]["return"].item()
    assert card.policy == "scored_by_suite:widest"


def test_a_piece_is_named_by_all_it_depends_on():
    one = Measure("feed", 0, TINY, Given(), "x", True, "abc")
    others = [
        Measure("routing", 0, TINY, Given(), "x", True, "abc"),
        Measure("feed", 1, TINY, Given(), "x", True, "abc"),
        Measure("feed", 0, Size("tiny", (0, 1), 3, (70, 20, 70)), Given(), "x", True, "abc"),
        Measure("feed", 0, TINY, Given("a:b", "f"), "x", True, "abc"),
        Measure("feed", 0, TINY, Given("a:b", "g"), "x", True, "abc"),
        Measure("feed", 0, TINY, Given(), "x", False, "abc"),
        Measure("feed", 0, TINY, Given(), "x", True, "abd"),
    ]
    assert len({one.key, *(other.key for other in others)}) == 1 + len(others)


def fake_rows(**changes):
    """Rows of a domain in which every bar holds, but for the changes by kernel."""
    fine = {"RAG": 1.0, "AUC_R": 1.0, "SM_R": 1.0, "SM_vs_P0": 1.0, "ReturnKept": 1.0, "ASD": 0.0}
    rows = [
        {"kernel": "off (P0)", **fine},
        {"kernel": "RAPO", **fine, "SM_R": 0.6, "SM_vs_P0": 0.2, "ReturnKept": 0.95},
        {"kernel": "off@rep", **fine},
        {"kernel": "trace alone", **fine, "SM_vs_P0": 0.6},
        {"kernel": "route-flap damping", **fine, "SM_vs_P0": 0.4, "ReturnKept": 0.96},
        {"kernel": CONSTANT, "action": 0, **fine, "SM_vs_P0": 0.7},
        {"kernel": CONSTANT, "action": 1, **fine},
    ]
    for row in rows:
        row.update(changes.get(row["kernel"], {}))
    return pd.DataFrame(rows)


CASES = {
    "SM_R": {"RAPO": {"SM_R": 0.76}},
    "SM_vs_P0": {"RAPO": {"SM_vs_P0": 0.61}, "route-flap damping": {"SM_vs_P0": 0.62}},
    "ReturnKept": {"RAPO": {"ReturnKept": 0.79}, "route-flap damping": {"ReturnKept": 0.79}},
    "restored": {"off@rep": {"SM_vs_P0": 1.0001}},
    "trace": {"trace alone": {"SM_R": 0.94}},
    "frontier": {CONSTANT: {"SM_vs_P0": 0.2, "ReturnKept": 0.95}},
    "baseline": {"route-flap damping": {"SM_vs_P0": 0.19}},
    "SM_R undefined": {"RAPO": {"SM_R": float("nan")}},
}


@pytest.mark.parametrize("case", [None, *CASES])
def test_each_bar_can_be_missed_alone(case):
    found = bars(DOMAINS["routing"], fake_rows(**CASES.get(case, {})), sees_memory=False)
    assert [bar.name for bar in found] == list(BARS)
    missed = [bar.name for bar in found if not bar.holds]
    assert missed == ([] if case is None else [case.split()[0]])


def test_a_baseline_at_more_return_is_not_beaten_by_less_mass():
    rows = fake_rows(**{"route-flap damping": {"ReturnKept": 0.99}})
    missed = [b.name for b in bars(DOMAINS["routing"], rows, False) if not b.holds]
    assert missed == ["baseline"]


def test_a_policy_that_sees_the_memory_may_be_near():
    rows = fake_rows(**{"off@rep": {"SM_vs_P0": 1.04}})
    assert all(b.holds for b in bars(DOMAINS["routing"], rows, sees_memory=True))
    rows = fake_rows(**{"off@rep": {"SM_vs_P0": 1.06}})
    assert not all(b.holds for b in bars(DOMAINS["routing"], rows, sees_memory=True))


def test_the_table_of_domains_fits_the_platforms():
    for domain in chosen_domains("all"):
        env = domain.make(0, True)
        assert env.single_action_space.contains(np.int64(domain.action)), domain.name
        assert 0 < domain.SM_R < 1 and domain.baselines
        for baseline in domain.baselines:
            env.like(1, **baseline.options)
    assert set(command.ENGINES.values()) == {"local", "ray"}


def test_a_checkpoint_of_a_platform_is_scored_and_refused_elsewhere(here, tmp_path):
    small = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)
    kwargs = {"data": "stand-in", "horizons": [60, 10, 60], "seed": 1000}
    config = PlatformConfig(
        method="RAPO", env="rapo/Routing-v0", env_kwargs=kwargs, steps=256, ppo=small
    )
    train(config, tmp_path / "run")
    path = str(tmp_path / "run" / "checkpoint.pt")
    (card,) = run_suite("routing", "one", tmp_path / "out", policy=path, stand_in=True)
    ours = card.rows[card.rows["kernel"] == "RAPO"].iloc[0]
    assert ours["ASD"] > 0  # it sees the memory
    assert "within 0.05" in next(b.demand for b in card.bars if b.name == "restored")
    with pytest.raises(ValueError, match="rapo/Routing-v0"):
        run_suite("feed", "one", tmp_path / "other", policy=path, stand_in=True)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("observe", ["x", "xsummary"])
def test_an_agent_of_stable_baselines_is_scored_and_refused_elsewhere(observe, here, tmp_path):
    sb3 = pytest.importorskip("stable_baselines3")
    env = gymnasium.make("rapo/Routing-v0", data="stand-in", seed=1000, observe=observe)
    model = sb3.PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, device="cpu")
    model.learn(32).save(tmp_path / "agent.zip")
    path = str(tmp_path / "agent.zip")
    (card,) = run_suite("routing", "one", tmp_path / "out", policy=path, stand_in=True)
    ours = card.rows[card.rows["kernel"] == "RAPO"].iloc[0]
    assert (ours["ASD"] > 0) == (observe == "xsummary")
    with pytest.raises(ValueError, match=r"agent\.zip cannot be scored on feed"):
        run_suite("feed", "one", tmp_path / "other", policy=path, stand_in=True)
    assert not (tmp_path / "other").exists()
