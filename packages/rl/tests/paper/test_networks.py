"""The networks study: what it loads, measures and writes."""

import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from repository import DATA
from typer.testing import CliRunner

from rapo.agents.config import PPOConfig
from rapo.cli.main import app
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.fit import fit
from rapo.paper.presets import PRESETS, QUICK, SMOKE
from rapo.paper.reproduce import run_studies
from rapo.paper.studies.networks import analysis
from rapo.paper.studies.networks.catalogue import NETWORKS, Network
from rapo.paper.studies.networks.figure import plot_networks
from rapo.paper.studies.networks.plan import NetworkJob, plan
from rapo.policies import ConstantPolicy
from rapo.rsd.runner import evaluate

TINY = replace(
    SMOKE,
    networks=("karate", "email_eu_core"),
    network_steps=1_024,
    ppo=PPOConfig(envs=4, rollout=512, hidden=16),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The study on karate alone, without any data."""
    out = tmp_path_factory.mktemp("networks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "smoke", TINY)
        run_studies("networks", "smoke", out, data=out / "nowhere", jobs=1)
    return out


def test_the_networks_of_the_study_are_all_there():
    names = {network.name for network in NETWORKS}
    real = {"email_eu_core", "congress_twitter", "wiki_vote", "bitcoin_otc"}
    assert real | {"karate", "davis", "les_miserables"} <= names
    assert {n.nodes for n in NETWORKS if n.nodes} == {50, 100, 250, 500, 1000, 5000}
    assert len({network.key for network in NETWORKS}) == len(NETWORKS)
    assert len({network.title for network in NETWORKS if not network.nodes}) == 10


@pytest.mark.parametrize("key", ["karate", "karate-club-Officer", "davis", "generated-50"])
def test_a_network_without_a_file_loads(key):
    network = next(n for n in NETWORKS if n.key == key)
    graph = network.load(Path("nowhere"))
    assert not network.missing(Path("nowhere"))
    if network.sensitive != "ball":
        label, _, value = network.sensitive.partition("=")
        inside = {graph.labels[label][i] for i in range(graph.n) if graph.sensitive[i]}
        assert inside == {value}


def test_every_policy_and_kernel_has_a_row(folder):
    table = pd.read_csv(folder / "networks_results.csv")
    rows = set(zip(table["policy"], table["kernel"], strict=True))
    kernels = {"off", "full", "off@rep"}
    assert rows == {(p, k) for p in ("aggressive", "RAPO") for k in kernels} | {
        ("aggressive", "full, not fitted")
    }
    stationary = table[table["kernel"] == "off"]
    for name in ("OddsRatio", "SM_vs_P0", "Reach_vs_P0", "ReturnKept"):
        assert (stationary[name] == 1).all()
    deformed = table[(table["kernel"] == "full") & (table["policy"] == "aggressive")].iloc[0]
    assert deformed["SM_vs_P0"] < 0.6
    assert deformed["SM_vs_P0_low"] <= deformed["SM_vs_P0"] <= deformed["SM_vs_P0_high"]


def test_the_report_holds_the_fit_and_names_absent_networks(folder):
    network = next(n for n in NETWORKS if n.key == "karate")
    fitted = fit(network.load(folder))
    row = pd.read_csv(folder / "networks.csv").iloc[0]
    assert (row["regions"], row["spec"]) == (fitted.count, fitted.spec)
    assert row["tau"] == pytest.approx(fitted.params.tau, rel=1e-5)
    assert (folder / "figures" / "networks.png").stat().st_size > 10_000
    assert "email eu core" in (folder / "summary.md").read_text()


def test_a_second_run_computes_nothing(folder, monkeypatch):
    monkeypatch.setitem(PRESETS, "smoke", TINY)
    monkeypatch.setattr(NetworkJob, "run", None)
    before = (folder / "networks_results.csv").read_bytes()
    (section,) = run_studies("networks", "smoke", str(folder), data=str(folder / "elsewhere"))
    assert section.tables[0][1]["network"].tolist() == ["karate (34)"]
    assert (folder / "networks_results.csv").read_bytes() == before


def test_tables_of_another_preset_are_not_overwritten(folder, monkeypatch):
    monkeypatch.setitem(PRESETS, "quick", replace(QUICK, networks=("karate",), network_steps=512))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match="results of another config"):
        run_studies("networks", "quick", folder, data=folder / "nowhere", jobs=1)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_another_folder_of_data_is_another_job(tmp_path):
    """Two folders may hold different networks under the same name."""
    network = Network("made", "ball", "made")
    for name, text in (("one", "0,1\n"), ("two", "0,1\n1,2\n")):
        path = tmp_path / name / "made" / "edges.csv.gz"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    one, two, copy = (
        NetworkJob(network, tmp_path / name, 512, 4, PPOConfig()).key
        for name in ("one", "two", "copy")
    )
    assert one == copy != two


def test_a_damaged_table_is_named(folder, tmp_path):
    (job,) = plan(replace(TINY, data=str(tmp_path)))
    path = job.folder(tmp_path) / "results.parquet"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"results.parquet is damaged"):
        job.read(tmp_path, "results")


def test_a_missed_limit_is_named_and_selectivity_asked_of_large_networks_only():
    values = {"OddsRatio": 0.4, "SM_R": 0.7, "SM_vs_P0": 0.2, "ReturnKept": 0.7, "Selectivity": 0.1}
    rows = [
        {"title": "a", "nodes": nodes, "policy": "aggressive", "kernel": "full", **values}
        for nodes in (499, 500)
    ]
    small, large = analysis.limits(pd.DataFrame(rows)).to_dict("records")
    missed = {name.split()[0] for name, cell in large.items() if "MISSED" in str(cell)}
    assert missed == {"SM_R", "ReturnKept", "Selectivity"}
    assert {n.split()[0] for n, c in small.items() if "MISSED" in str(c)} == missed - {
        "Selectivity"
    }


def test_the_figure_has_a_row_per_network_and_a_panel_per_limit(folder):
    table = pd.read_csv(folder / "networks_results.csv").assign(title="karate (34)")
    _, axes = plot_networks(table)
    assert len(axes) == 4
    assert [tick.get_text() for tick in axes[0].get_yticklabels()] == ["karate (34)"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["networks", "--preset", "huge"], "huge"),
        (["networks", "--reading", "compact"], "does not take --reading"),
        (["consistency", "--reading", "compact"], "does not take --reading"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(tmp_path, options, named):
    done = CliRunner().invoke(app, ["reproduce", *options, "--out", str(tmp_path / "out")])
    assert done.exit_code != 0 and named in str(done.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not DATA.is_dir(), reason="the folder of real networks is not there")
@pytest.mark.parametrize("key", ["email_eu_core-department-14", "congress_twitter-party-R"])
def test_real_networks_with_a_label_keep_the_limits(key):
    graph = next(n for n in NETWORKS if n.key == key).load(DATA)
    env = GraphDiffusionVectorEnv(1, graph=graph)
    result = evaluate(env, ConstantPolicy(0), 20, seed=1000, against_P0=True, selectivity=True)
    pooled, means = result.pooled(), result.frame.mean(numeric_only=True)
    assert means["OddsRatio"] <= 0.5
    assert pooled["SM_R"]["ratio"] <= 0.6
    assert pooled["SM_vs_P0"]["ratio"] <= 0.3
    assert pooled["ReturnKept"]["ratio"] >= 0.75
    assert means["Selectivity"] >= 0.15
