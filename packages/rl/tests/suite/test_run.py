"""The suite from its options to the scorecard, on feed and routing with generated data."""

import json
import shutil
import sys
from dataclasses import replace

import gymnasium
import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from rapo import FieldParams, cli
from rapo.agents import PPOConfig, RunConfig
from rapo.agents.train import train
from rapo.policies import ConstantPolicy
from rapo.rsd import evaluate
from rapo.rsd.pooled import POOLED, totals
from rapo.suite import sizes
from rapo.suite.demands import DEMANDS
from rapo.suite.domains import DOMAINS
from rapo.suite.measure import CONSTANT, Measure, read_episodes
from rapo.suite.run import report_suite, run_suite
from rapo.suite.scorecard import METRICS
from rapo.suite.sizes import Size

TINY = Size("tiny", (0, 1), 2, (70, 20, 70))
KERNELS = ["off (P0)", "RAPO", "off@rep", "trace alone"]


@pytest.fixture(scope="module")
def here():
    """Presets of seconds; the keys of the jobs that run."""
    ran = []
    plain = Measure.run

    def run(self, root):
        ran.append(self.key)
        plain(self, root)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sizes.SIZES, "tiny", TINY)
        patch.setitem(sizes.SIZES, "one", replace(TINY, name="one", seeds=(0,)))
        patch.setattr(Measure, "run", run)
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
    assert set(METRICS) <= set(table) and {f"bar_{name}" for name in DEMANDS} <= set(table)


def test_the_numbers_are_those_of_a_direct_evaluation(made):
    out, _ = made
    table = pd.read_csv(out / "suite.csv")
    domain = DOMAINS["routing"]

    def direct(off=False, **options):
        """Pooled ratios by metric."""
        found = [
            evaluate(
                domain.make(seed, "stand-in", **options), ConstantPolicy(1, 4), 2, 1000 * seed,
                True, horizons=TINY.horizons, off_at_replay=off, against_P0=True,
            )
            for seed in TINY.seeds
        ]  # fmt: skip
        parts = {m: np.array([totals(one, m) for one in found]).sum(axis=(0, 2)) for m in POOLED}
        return {metric: after / before for metric, (after, before) in parts.items()}

    found = evaluate(
        domain.make(1, "stand-in"), ConstantPolicy(1, 4), 2, 1000, True, horizons=TINY.horizons
    )
    written = read_episodes(out, jobs_of(out, "routing-1")[0].name)
    ours = written[written["kernel"] == "RAPO"]
    inside = found.of_phase("sensitive_mass", 2).sum(axis=1)
    assert ours["sensitive_mass"].tolist() == inside.tolist()
    assert ours["return"].tolist() == found.frame["ReplayReturn"].tolist()
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
    assert all(d.holds for card in cards for d in card.demands if d.name == "restored")


def test_the_page_holds_everything_and_says_what_the_data_are(made):
    out, cards = made
    page = (out / "scorecard.html").read_text()
    assert page.count("stand-in") >= 2 and "GENERATED DATA" in page
    assert page.count("data:image/png;base64,") == 1 and "http" not in page.split("<body>")[1]
    missed = [d for card in cards for d in card.demands if not d.holds]
    assert page.count("MISSED</td>") == 2 * len(missed)  # in the matrix, and below in its domain
    assert (out / "scorecard.png").read_bytes().startswith(b"\x89PNG")


def jobs_of(out, name=""):
    """The folders of the jobs whose names begin so."""
    return sorted((out / "platforms").glob(f"{name}*"))


def test_finished_jobs_are_not_run_again(made, here):
    out, _ = made
    folders = jobs_of(out)
    before = {folder: (folder / "episodes.csv").read_bytes() for folder in folders}
    table = (out / "suite.csv").read_bytes()
    (folders[-1] / "episodes.csv").unlink()
    here.clear()
    run_suite("routing", "tiny", out, stand_in=True, jobs=1)
    assert here == [folders[-1].name]
    assert (out / "suite.csv").read_bytes() == table
    assert {folder: (folder / "episodes.csv").read_bytes() for folder in folders} == before


def test_other_versions_are_noted_beside_those_that_began(made, here, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(made[0], out)
    manifest = json.loads((out / "manifest.json").read_text())
    began = {**manifest["versions"], "numpy": "1.0"}
    (out / "manifest.json").write_text(json.dumps({**manifest, "versions": began}))
    run_suite("routing", "tiny", out, stand_in=True, jobs=1)
    noted = json.loads((out / "manifest.json").read_text())
    assert noted["versions"] == began and noted["also_made_with"] == [manifest["versions"]]


def test_a_damaged_table_is_named(made, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(made[0], out)
    path = jobs_of(out)[0] / "episodes.csv"
    for damaged in ("", "seed,kernel\n0,RAPO\n", path.read_text()[:-30] + ",,\n"):
        path.write_text(damaged)
        with pytest.raises(ValueError, match=r"episodes\.csv is damaged"):
            report_suite(out)


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
    shutil.rmtree(jobs_of(out, "feed")[0])
    assert [card.domain.name for card in report_suite(out)] == ["routing"]
    assert "Not finished yet: feed" in (out / "scorecard.html").read_text()


def test_a_report_is_made_from_the_results_alone(made):
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
    "no such file": (["--policy", "nowhere"], "nowhere"),
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


def test_missing_data_are_generated_and_every_row_says_so(here, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RAPO_DATA", str(tmp_path / "nowhere"))
    (card,) = run_suite("routing", "one", tmp_path / "out", jobs=1, console=Console(width=400))
    assert set(card.table()["data"]) == {"stand-in"} and card.title == "routing (stand-in)"
    said = capsys.readouterr().out
    assert "nowhere" in said and "RAPO_DATA" in said and "rapo docs suite" in said


def test_results_on_other_data_are_not_mixed(here, tmp_path, monkeypatch):
    run_suite("routing", "one", tmp_path / "out", stand_in=True, jobs=1)
    before = (tmp_path / "out" / "suite.csv").read_bytes()
    monkeypatch.setattr("rapo.suite.run.about", lambda env: {"data": "topology_zoo"})
    with pytest.raises(ValueError, match="stand-in, now topology_zoo"):
        run_suite("routing", "one", tmp_path / "out", stand_in=True, jobs=1)
    assert (tmp_path / "out" / "suite.csv").read_bytes() == before


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
    old = {"made_by": "rapo suite run", "config": {}, "domains": {}, "versions": {"rapo": "0.2.0"}}
    (tmp_path / "manifest.json").write_text(json.dumps(old))
    with pytest.raises(ValueError, match=r"version 0\.2"):
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


def test_a_checkpoint_of_a_platform_is_scored_and_refused_elsewhere(here, tmp_path):
    small = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)
    kwargs = {"data": "stand-in", "horizons": [60, 10, 60], "seed": 1000}
    config = RunConfig(
        method="RAPO", env="rapo/Routing-v0", env_kwargs=kwargs, steps=256, ppo=small
    )
    train(config, tmp_path / "run")
    path = str(tmp_path / "run")
    (card,) = run_suite("routing", "one", tmp_path / "out", policy=path, stand_in=True)
    ours = card.rows[card.rows["kernel"] == "RAPO"].iloc[0]
    assert ours["ASD"] > 0  # it sees the memory
    assert "within 0.05" in next(d.text for d in card.demands if d.name == "restored")
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
