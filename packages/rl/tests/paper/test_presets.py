"""Presets: seeds of the optimiser, what a manifest gives back, what a run costs."""

import json
from dataclasses import replace

import pytest
from repository import RESULTS

from rapo.paper import cost
from rapo.paper.presets import PAPER, PRESETS, QUICK, Preset
from rapo.paper.reproduce import chosen_studies, missing_pieces, study, write_sections
from rapo.paper.schedule import needed
from rapo.paper.studies.section import Store
from rapo.paper.task import without_additions
from rapo.paper.tasks import Train


def test_graphs_have_optimiser_seeds_of_their_own_shared_by_methods():
    configs = {m: [PAPER.config(m, g) for g in range(10)] for m in ("GE", "RAPO")}
    assert len({c.seed for c in configs["RAPO"]}) == 10
    assert [c.seed for c in configs["GE"]] == [c.seed for c in configs["RAPO"]]
    guard = PAPER.policy("Shield-UM", 3)
    assert guard.ge == Train(configs["GE"][3]) and guard.rapo == Train(configs["RAPO"][3])


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda p: p.name)
def test_a_manifest_gives_the_preset_back(preset):
    assert Preset.from_dict(json.loads(json.dumps(preset.to_dict()))) == preset


def test_a_manifest_keeps_what_has_changed_since():
    other = replace(QUICK, setting=QUICK.setting.replace(budget=0.4, support=7))
    back = Preset.from_dict(json.loads(json.dumps(other.to_dict())))
    assert back == other
    config = back.config("RAPO", 1)
    assert (config.setting.budget, config.setting.support) == (0.4, 7)
    strange = {**other.to_dict(), "params": {**other.params.to_dict(), "w_H": 9.0}}
    with pytest.raises(ValueError, match="not those of its setting"):
        Preset.from_dict(strange)


def test_what_changes_nothing_has_no_part_in_a_name():
    config = {"setting": {"echo": 0.0, "psi_min": 0.1, "support": 7}, "params": {"psi_min": 0.1}}
    assert without_additions({**config, "fit": None}) == {
        "setting": {"support": 7}, "params": {"psi_min": 0.1},
    }  # fmt: skip
    other = {"setting": {"echo": 0.5}, "fit": True}
    assert without_additions(other) == other


def test_before_there_were_seeds_per_graph_all_were_0():
    values = QUICK.to_dict()
    del values["seed_per_graph"], values["literal_seeds"]
    old = Preset.from_dict(values)
    assert old.config("GE", 2).seed == 0 and old.literal_seeds == PAPER.literal_seeds


def test_before_regions_could_be_as_many_they_were_as_large_at_every_size():
    values = PAPER.to_dict()
    del values["as_many"]
    assert Preset.from_dict(values).as_many == ()
    assert Preset.from_dict(PAPER.to_dict()).as_many == (500, 1000)


@pytest.mark.skipif(not RESULTS.exists(), reason="a source without results")
@pytest.mark.parametrize(
    ("folder", "studies"),
    [
        (
            "paper",
            [
                "table1",
                "learning",
                "literal",
                "table-a1",
                "sizes",
                "tradeoff",
                "ablations",
                "mechanism",
            ],
        ),
        ("paper-compact", ["table1", "table-a1", "sizes", "tradeoff", "ablations", "mechanism"]),
    ],
)
def test_the_committed_results_are_found_by_their_manifest(folder, studies):
    """Fails if a config gained a value that `tasks.ADDED` does not know."""
    manifest = json.loads((RESULTS / folder / "manifest.json").read_text())
    preset = Preset.from_dict(manifest["config"])
    for name in studies:
        assert missing_pieces(name, preset, RESULTS / folder) == [], name


def test_the_paper_is_affordable(tmp_path):
    """One-thread hours of `reproduce all --preset paper`."""
    goals = [task for name in chosen_studies("all") for task in study(name).plan(PAPER)]
    tasks = needed(goals, tmp_path)
    assert 4 < cost.hours(tasks) <= 14
    assert len(PAPER.size_seeds) == 10


def test_cost_by_hand():
    mlp, gru = (Train(PAPER.config(m, 0, steps=20_480)) for m in ("GE", "PM-RNN"))
    assert cost.seconds(mlp) == pytest.approx(20_480 / 13_000)
    assert cost.seconds(gru) == pytest.approx(20_480 / 7_400)
    one = PAPER.evaluation("RAPO", 0)
    assert cost.seconds(PAPER.evaluation("Shield", 0)) > 10 * cost.seconds(one)
    assert cost.seconds(replace(one, episodes=400)) == pytest.approx(20 * cost.seconds(one))
    assert cost.hours([one, one, mlp]) * 3600 == pytest.approx(
        cost.seconds(one) + cost.seconds(mlp)
    )


@pytest.mark.skipif(not (RESULTS / "paper" / "pieces").exists(), reason="a source without results")
@pytest.mark.parametrize(("name", "folder"), [("table1", "paper"), ("mechanism", "paper-compact")])
def test_committed_tables_are_made_of_the_committed_pieces(tmp_path, name, folder):
    root = RESULTS / folder
    preset = Preset.from_dict(json.loads((root / "manifest.json").read_text())["config"])
    section = study(name).analyse(Store(root, preset))
    write_sections([replace(section, figures=())], tmp_path)
    written = [path.name for path in tmp_path.iterdir() if (root / path.name).exists()]
    assert {"table1.csv", "mechanism.csv"} & set(written)
    for file in written:
        assert (tmp_path / file).read_bytes() == (root / file).read_bytes(), file
