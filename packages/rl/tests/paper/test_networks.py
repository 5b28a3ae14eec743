"""The networks study: what it loads, runs, leaves and says."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from repository import DATA

from rapo.graphs.fit import fit
from rapo.paper.studies.networks import analysis
from rapo.paper.studies.networks.catalogue import NETWORKS, Network
from rapo.paper.studies.networks.command import run_networks
from rapo.paper.studies.networks.figure import plot_networks
from rapo.paper.studies.networks.plan import SIZES, Measure


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of the smallest preset, on karate alone, without any data."""
    out = tmp_path_factory.mktemp("networks")
    size = replace(SIZES["smoke"], networks=("karate", "email_eu_core"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SIZES, "smoke", size)
        verdicts = run_networks("smoke", out, data=out / "nowhere", jobs=1)
    return out, verdicts, size


def test_the_networks_of_the_study_are_all_there():
    names = {network.name for network in NETWORKS}
    assert {"email_eu_core", "congress_twitter", "wiki_vote", "bitcoin_otc", "karate", "davis",
            "les_miserables"} <= names  # fmt: skip
    assert {n.nodes for n in NETWORKS if n.generated} == {50, 100, 250, 500, 1000, 5000}
    assert len({network.key for network in NETWORKS}) == len(NETWORKS)


@pytest.mark.parametrize("key", ["karate", "karate-club-Officer", "davis", "generated-50"])
def test_a_network_without_a_file_loads(key):
    network = next(n for n in NETWORKS if n.key == key)
    graph = network.load(Path("nowhere"))
    assert not network.missing(Path("nowhere"))
    if network.sensitive != "ball":
        label, _, value = network.sensitive.partition("=")
        inside = {graph.labels[label][i] for i in range(graph.n) if graph.sensitive[i]}
        assert inside == {value}


def test_every_policy_and_kernel_has_a_row(made):
    out, _, _ = made
    table = pd.read_csv(out / "results.csv")
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


def test_the_fit_and_the_absent_networks_are_told(made):
    out, _, _ = made
    network = next(n for n in NETWORKS if n.key == "karate")
    found = fit(network.load(out))
    told = pd.read_csv(out / "networks.csv").iloc[0]
    assert (told["regions"], told["spec"]) == (found.count, found.spec)
    assert told["tau"] == pytest.approx(found.params.tau, rel=1e-5)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["left_out"] == ["email_eu_core"]
    assert (out / "networks.png").stat().st_size > 10_000
    assert "calibrated" in (out / "summary.md").read_text()


def test_a_second_run_goes_on_with_what_is_there(made, monkeypatch):
    out, verdicts, size = made
    monkeypatch.setitem(SIZES, "smoke", size)
    monkeypatch.setattr(Measure, "run", None)  # nothing is left to run
    pd.testing.assert_frame_equal(
        run_networks("smoke", str(out), data=str(out / "nowhere")), verdicts
    )


def test_another_folder_of_data_is_another_job(tmp_path):
    network = Network("some", "ball", "some", "labels.csv.gz")
    jobs = []
    for name, text in (("a", "0,1"), ("b", "0,1"), ("c", "0,2")):
        folder = tmp_path / name / "some"
        folder.mkdir(parents=True)
        (folder / "edges.csv.gz").write_bytes(text.encode())
        (folder / "labels.csv.gz").write_bytes(b"")
        jobs.append(Measure(network, SIZES["smoke"], tmp_path / name))
    a, b, c = (job.key for job in jobs)
    assert a == b != c  # what the files hold counts, not where they lie
    (tmp_path / "b" / "some" / "labels.csv.gz").write_bytes(b"other")
    assert jobs[1].key != a


def test_another_presets_tables_are_not_overwritten(made, monkeypatch):
    out, _, size = made
    monkeypatch.setitem(SIZES, "smoke", size)
    monkeypatch.setitem(SIZES, "larger", replace(size, episodes=5))
    before = {path: path.read_bytes() for path in out.glob("*.*")}
    with pytest.raises(ValueError, match=r"another config.* differ in episodes, preset"):
        run_networks("larger", out, data=out / "nowhere", jobs=1)
    assert {path: path.read_bytes() for path in out.glob("*.*")} == before


def test_what_misses_its_bar_is_said_and_selectivity_asked_of_large_ones_only():
    values = {"OddsRatio": 0.4, "SM_R": 0.7, "SM_vs_P0": 0.2, "ReturnKept": 0.7, "Selectivity": 0.1}
    rows = [
        {"network": "a", "sensitive": "ball", "nodes": nodes, "policy": "aggressive",
         "kernel": "full", **values}
        for nodes in (499, 500)
    ]  # fmt: skip
    small, large = analysis.verdicts(pd.DataFrame(rows)).to_dict("records")
    missed = {name.split()[0] for name, told in large.items() if "MISSED" in str(told)}
    assert missed == {"SM_R", "ReturnKept", "Selectivity"}
    assert {n.split()[0] for n, t in small.items() if "MISSED" in str(t)} == missed - {
        "Selectivity"
    }


def test_an_unknown_preset_is_named(tmp_path):
    with pytest.raises(ValueError, match="huge"):
        run_networks("huge", tmp_path / "out", data=tmp_path)
    assert not (tmp_path / "out").exists()


def test_the_figure_has_a_row_per_network_and_a_panel_per_bar(made):
    out, _, _ = made
    _, axes = plot_networks(pd.read_csv(out / "results.csv"))
    assert len(axes) == 4
    assert [tick.get_text() for tick in axes[0].get_yticklabels()] == ["karate (34)"]


@pytest.mark.skipif(not DATA.is_dir(), reason="the folder of real networks is not there")
@pytest.mark.parametrize("key", ["email_eu_core-department-14", "congress_twitter-party-R"])
def test_real_networks_with_a_label_meet_the_bars(key):
    from rapo.envs.vector import GraphDiffusionVectorEnv
    from rapo.policies import ConstantPolicy
    from rapo.rsd.runner import evaluate

    graph = next(n for n in NETWORKS if n.key == key).load(DATA)
    env = GraphDiffusionVectorEnv(1, graph=graph)
    result = evaluate(env, ConstantPolicy(0), 20, seed=1000, against_P0=True, selectivity=True)
    pooled, means = result.pooled(), result.frame.mean(numeric_only=True)
    assert means["OddsRatio"] <= 0.5
    assert pooled["SM_R"]["ratio"] <= 0.6
    assert pooled["SM_vs_P0"]["ratio"] <= 0.3
    assert pooled["ReturnKept"]["ratio"] >= 0.75
    assert means["Selectivity"] >= 0.15
