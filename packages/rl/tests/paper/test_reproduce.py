"""`rapo reproduce` from its words to the files, with a preset of seconds."""

import json
import os
import re
import shutil
import sys
from dataclasses import replace

import pandas as pd
import pytest

from rapo import cli
from rapo.agents.config import PPOConfig
from rapo.cascade.setting import Setting
from rapo.jobs import folder as jobs_folder
from rapo.paper import presets, reproduce
from rapo.paper.jobs import Policy, PolicyJob
from rapo.paper.reproduce import planned_jobs
from rapo_core.version import VERSION

SHORT = Setting.default().replace(horizons=(120, 40, 120))
TINY = replace(
    presets.SMOKE,
    name="tiny",
    nodes=40,
    graph_seeds=(0, 1),
    steps=512,
    episodes=2,
    ppo=PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16),
    setting=SHORT,
)
COLUMNS = ["method", "RAG", "RAG_std", "AUC_R", "AUC_R_std", "SM_R", "SM_R_std", "ReplayRet",
           "ReplayRet_std"]  # fmt: skip

ALL = reproduce.STUDIES
STUDIES = {name: reproduce.STUDIES[name] for name in ("table1", "table-a1", "mechanism")}
"""Mechanism needs no runs but Table 1's."""


def patched(patch):
    patch.setitem(presets.PRESETS, "tiny", TINY)
    patch.setitem(presets.PRESETS, "larger", replace(TINY, name="larger", episodes=3))
    patch.setattr(reproduce, "STUDIES", STUDIES)


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    patched(monkeypatch)


def rapo(monkeypatch, capsys, *words):
    """Exit code and what the command printed, in this process, where the preset is known."""
    monkeypatch.setattr(sys, "argv", ["rapo", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code, *capsys.readouterr()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with Table 1."""
    out = tmp_path_factory.mktemp("made") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patched(patch)
        sections = reproduce.run_studies("table1", "tiny", out, jobs=1)
    assert [section.name for section in sections] == ["table1"]
    return out


def snapshot(folder):
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def test_table_1_can_be_recomputed_from_the_episodes(made):
    table = pd.read_csv(made / "table1.csv")
    assert table.columns.tolist() == COLUMNS
    assert table["method"].tolist() == list(TINY.methods)
    episodes = pd.read_csv(made / "episodes.csv")
    assert len(episodes) == 4 * 2 * 2
    unit = episodes.loc[episodes["method"] == "GE", "ReplayReturn"].mean()
    episodes["ReplayRet"] = episodes["ReplayReturn"] / unit
    graphs = episodes.groupby(["method", "graph_seed"])[["RAG", "AUC_R", "SM_R", "ReplayRet"]]
    means = graphs.mean().groupby("method")
    for metric in ("RAG", "AUC_R", "SM_R", "ReplayRet"):
        expected = means[metric].agg(["mean", "std"]).loc[table["method"]]
        assert table[metric].to_numpy() == pytest.approx(expected["mean"].to_numpy(), rel=1e-4)
        assert table[f"{metric}_std"].to_numpy() == pytest.approx(
            expected["std"].to_numpy(), rel=1e-2, abs=1e-5
        )
    assert table.set_index("method").loc["GE", "ReplayRet"] == pytest.approx(1, abs=1e-5)


def test_the_manifest_says_what_was_run(made):
    manifest = json.loads((made / "manifest.json").read_text())
    assert (manifest["preset"], manifest["steps"], manifest["episodes"]) == ("tiny", 512, 2)
    assert manifest["graph_seeds"] == [0, 1]
    assert manifest["config"]["ppo"]["hidden"] == 16
    assert manifest["config"]["setting"]["horizons"] == [120, 40, 120]
    assert manifest["config"]["params"]["w_H"] > 0
    assert manifest["versions"]["rapo"] == VERSION
    assert {"python", "numpy", "torch", "numba"} <= set(manifest["versions"])


def test_the_report_is_self_contained(made):
    html = (made / "report.html").read_text()
    assert not re.search(r"https?://", html)
    for link in re.findall(r'(?:src|href)="([^"]*)"', html):
        assert link.startswith(("data:image/png;base64,", "#")), link[:60]
    assert "Table 1: replay under a frozen policy" in html
    summary = (made / "summary.md").read_text()
    for picture in re.findall(r"\]\((figures/[^)]*)\)", summary):
        assert (made / picture).stat().st_size > 5_000
    claims = pd.read_csv(made / "claims.csv")
    assert len(claims) > 16 and set(claims["verdict"]) <= {"holds", "differs"}
    for kind, part in claims.groupby("kind"):
        held = (part["verdict"] == "holds").sum()
        assert f"{kind}: {held} hold, {len(part) - held} differ" in summary


def test_a_report_shows_the_studies_that_were_run_and_no_others(made, tmp_path, monkeypatch):
    assert not (made / "mechanism.csv").exists()  # it could be drawn, but nobody asked
    assert json.loads((made / "manifest.json").read_text())["studies"] == ["table1"]
    out = tmp_path / "results"
    shutil.copytree(made, out)
    monkeypatch.setattr(
        reproduce, "STUDIES", {name: ALL[name] for name in ("table1", "motivation")}
    )
    (section,) = reproduce.run_studies("motivation", "tiny", out)
    assert section.name == "motivation"
    assert json.loads((out / "manifest.json").read_text())["studies"] == ["table1", "motivation"]
    summary = (out / "summary.md").read_text()
    assert "Table 1: replay under a frozen policy" in summary and section.title in summary


def test_the_command_goes_on_with_what_is_there(made, monkeypatch, capsys):
    before = snapshot(made)
    monkeypatch.setattr(jobs_folder, "VERSION", "9.9")  # no job is run with it
    code, out, err = rapo(
        monkeypatch, capsys, "reproduce", "table1", "--preset", "tiny", "--out", made
    )
    assert code in (0, None), err
    assert "Table 1: replay under a frozen policy" in out and "off@rep" in out
    assert "left out" not in out
    after = snapshot(made)
    for name, (time, content) in before.items():
        if name.startswith("jobs"):
            assert after[name][0] == time, name
        elif name.endswith((".csv", ".md", "manifest.json")):
            assert after[name][1] == content, name


def test_figures_are_drawn_from_frames_alone(made, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(reproduce, "STUDIES", {"table1": "table1", "table-a1": "table_a1"})
    monkeypatch.setattr(jobs_folder, "VERSION", "9.9")
    manifest = (made / "manifest.json").read_bytes()
    os.symlink(made / "manifest.json", tmp_path / "manifest.json")
    no_runs = shutil.ignore_patterns("run")
    shutil.copytree(made / "jobs", tmp_path / "jobs", ignore=no_runs)
    code, out, err = rapo(
        monkeypatch, capsys, "reproduce", "figures", "--preset", "tiny", "--out", tmp_path
    )
    assert code in (0, None), err
    missing = planned_jobs(["table-a1"], TINY)  # GE of Table 1, but not its Shield, and SS
    assert [line for line in out.splitlines() if line.startswith("left out")] == [
        f"left out table-a1: 4 of its jobs are not done, the first is {missing[0].key}; rapo "
        f"reproduce table-a1 --preset tiny --out {tmp_path} makes what is missing"
    ]
    assert (made / "manifest.json").read_bytes() == manifest
    assert (tmp_path / "table1.csv").read_bytes() == (made / "table1.csv").read_bytes()
    assert (tmp_path / "figures" / "table1.png").exists() and not list(tmp_path.rglob("run"))


def test_figures_of_a_folder_without_a_finished_study_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reproduce, "STUDIES", ALL)  # one of them needs no runs at all
    reproduce.claim(tmp_path, TINY)
    code, out, err = rapo(
        monkeypatch, capsys, "reproduce", "figures", "--preset", "tiny", "--out", tmp_path
    )
    assert code == 2 and out == ""
    assert f"{tmp_path} holds no finished study; rapo reproduce all --preset tiny --out" in err
    assert not (tmp_path / "report.html").exists()


def test_another_preset_is_refused_and_changes_nothing(made, monkeypatch, capsys):
    before = snapshot(made)
    code, out, err = rapo(
        monkeypatch, capsys, "reproduce", "table1", "--preset", "larger", "--out", made
    )
    assert code == 2 and out == ""
    assert "differ in episodes, name (there episodes = 2, now 3); choose another --out" in err
    assert len(err.strip().splitlines()) == 1
    assert snapshot(made) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("table9",), "no study is called 'table9'; studies are table1, learning"),
        (("table1", "--preset", "huge"), "preset must be one of smoke, quick, paper"),
        (("table1", "--preset", "tiny", "--engine", "cloud"), "engine must be local or ray"),
        (("table1", "--preset", "tiny", "--jobs", "0"), "jobs must be a whole number >= 1, got 0"),
        (
            ("figures", "--preset", "tiny"),
            "holds no finished study; rapo reproduce all --preset tiny --out",
        ),
    ],
)
def test_bad_words_end_with_one_line_and_leave_nothing(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(reproduce, "STUDIES", ALL)  # one of them needs no runs at all
    folder = tmp_path / "new"
    code, _, err = rapo(monkeypatch, capsys, "reproduce", *words, "--out", folder)
    assert code == 2
    assert message in err and len(err.strip().splitlines()) == 1
    assert not folder.exists()


def test_results_of_other_defaults_are_drawn_but_not_added_to(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path / "old")
    old = tmp_path / "old"
    (old / "table1.csv").unlink()
    changed = replace(TINY, setting=SHORT.replace(budget=0.5), steps=1024)
    monkeypatch.setitem(presets.PRESETS, "tiny", changed)
    with pytest.raises(ValueError, match=r"differ in setting\.budget, steps"):
        reproduce.run_studies("table1", "tiny", old)
    sections = reproduce.run_studies("figures", "tiny", str(old))
    assert "table1" in [section.name for section in sections]
    assert (old / "table1.csv").read_bytes() == (made / "table1.csv").read_bytes()
    with pytest.raises(ValueError, match="another config"):
        reproduce.run_studies("figures", "larger", old)


def test_all_is_the_paper_and_seeds_are_asked_for_by_name(monkeypatch):
    monkeypatch.setattr(reproduce, "STUDIES", ALL)
    assert set(ALL) - set(reproduce.selected_studies("all")) == set(reproduce.APART)
    assert reproduce.selected_studies("seeds") == ["seeds"]
    assert {"learning", "literal"} <= set(reproduce.selected_studies("all"))
    assert "seeds" in reproduce.selected_studies("figures")  # where it is there


def test_without_pyarrow_nothing_is_begun(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    code, _, err = rapo(
        monkeypatch, capsys, "reproduce", "table1", "--preset", "tiny", "--out", tmp_path / "new"
    )
    assert code == 2 and "rapo-rl[paper]" in err and not (tmp_path / "new").exists()


def test_a_damaged_frame_is_named(made, tmp_path, monkeypatch, capsys):
    shutil.copytree(made / "jobs", tmp_path / "jobs")
    path = tmp_path / "jobs" / planned_jobs(["table1"], TINY)[2].key / "episodes.parquet"
    path.write_bytes(path.read_bytes()[:100])
    code, _, err = rapo(
        monkeypatch, capsys, "reproduce", "table1", "--preset", "tiny", "--out", tmp_path
    )
    assert code == 2 and f"{path} is damaged" in err and f"remove {path.parent}" in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "table1.csv").exists()


def test_figures_are_drawn_from_an_archive(made, tmp_path, monkeypatch, capsys):
    shutil.copytree(made / "jobs", tmp_path / "jobs")
    shutil.copy(made / "manifest.json", tmp_path)
    words = ("--preset", "tiny", "--out", tmp_path)
    code, out, err = rapo(monkeypatch, capsys, "reproduce", "archive", *words)
    assert code in (0, None), err
    assert "12 jobs" in out
    shutil.rmtree(tmp_path / "jobs")
    code, _, err = rapo(monkeypatch, capsys, "reproduce", "figures", *words)
    assert code in (0, None), err
    for name in ("table1.csv", "episodes.csv", "claims.csv"):
        assert (tmp_path / name).read_bytes() == (made / name).read_bytes(), name
    nothing = tmp_path / "nothing"
    code, _, err = rapo(monkeypatch, capsys, "reproduce", "archive", "--out", nothing)
    assert code == 2 and f"{nothing} holds no results" in err and not nothing.exists()


@pytest.mark.parametrize("what", ["table1", "figures"])
def test_results_of_version_0_2_are_refused_with_the_command(tmp_path, monkeypatch, capsys, what):
    command = "rapo reproduce all --preset tiny"
    old = {"preset": "tiny", "command": command, "versions": {"rapo": "0.2.1"}, "config": {}}
    (tmp_path / "manifest.json").write_text(json.dumps(old))
    (tmp_path / "pieces").mkdir()
    before = snapshot(tmp_path)
    code, _, err = rapo(
        monkeypatch, capsys, "reproduce", what, "--preset", "tiny", "--out", tmp_path
    )
    assert code == 2 and len(err.strip().splitlines()) == 1
    assert f"{tmp_path} holds results of version 0.2.1" in err
    assert f"{command} --out {tmp_path}-anew" in err
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("what", ["table1", "all", "figures"])
def test_data_that_no_study_would_read_are_refused(tmp_path, monkeypatch, capsys, what):
    out = tmp_path / "new"
    words = ("--preset", "tiny", "--data", tmp_path, "--out", out)
    code, _, err = rapo(monkeypatch, capsys, "reproduce", what, *words)
    assert code == 2 and "--data is for the study networks" in err
    assert not out.exists()


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "{}", '{"config": []}', '{"config": 3}', '{"config": {}, "also_made_with": 3}'],
)
def test_a_damaged_manifest_is_named(tmp_path, monkeypatch, capsys, text):
    (tmp_path / "manifest.json").write_text(text)
    code, _, err = rapo(
        monkeypatch, capsys, "reproduce", "table1", "--preset", "tiny", "--out", tmp_path
    )
    assert code == 2 and f"{tmp_path / 'manifest.json'} is damaged" in err
    assert len(err.strip().splitlines()) == 1
    assert (tmp_path / "manifest.json").read_text() == text


@pytest.fixture
def full_disk(monkeypatch):
    """A machine on which every job fails."""

    def run(job, root):
        raise OSError("the disk is full")

    monkeypatch.setattr(PolicyJob, "run", run)


def test_versions_that_ran_jobs_later_are_added_to_the_manifest(tmp_path, monkeypatch, full_disk):
    path = tmp_path / "manifest.json"

    def run_with(number):
        monkeypatch.setattr(jobs_folder, "VERSION", number)
        with pytest.raises(ValueError, match="the disk is full"):
            reproduce.run_studies("table1", "tiny", tmp_path, jobs=1)
        return path.read_text()

    first = run_with("1.0")
    assert run_with("1.0") == first and "also_made_with" not in first
    second = run_with("1.1")
    assert run_with("1.1") == second and run_with("1.0") == second
    third = run_with("1.2")
    assert run_with("1.1") == third
    content = json.loads(third)
    assert [made["rapo"] for made in content["also_made_with"]] == ["1.1", "1.2"]
    assert set(content["also_made_with"][0]) == set(content["versions"])


def test_a_failed_job_is_named_without_a_traceback(tmp_path, monkeypatch, capsys, full_disk):
    code, _, err = rapo(
        monkeypatch, capsys, "reproduce", "table1", "--preset", "tiny", "--out", tmp_path,
        "--jobs", "1",
    )  # fmt: skip
    failed = Policy(TINY.config("GE", 0)).key
    assert code == 2 and f"{failed}: OSError('the disk is full')" in err
    assert not (tmp_path / "table1.csv").exists()
