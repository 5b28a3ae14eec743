"""Results of a folder: frames of several jobs below each other, and what is missing is named."""

import shutil
from dataclasses import replace

import pandas as pd
import pytest

from rapo.jobs.tables import archive
from rapo.paper.jobs import jobs_of
from rapo.paper.presets import SMOKE
from rapo.paper.results import Results

PRESET = replace(SMOKE, graph_seeds=(0, 1), episodes=2)


def evaluations(method):
    return [PRESET.evaluation(method, seed) for seed in PRESET.graph_seeds]


def test_episodes_of_several_jobs_stand_below_each_other(tmp_path, write_result):
    for seed, each in enumerate(evaluations("RAPO")):
        write_result(tmp_path, each, {"episode": [0, 1], "RAG": [0.5, 1 / 3 + seed]})
        other = replace(each, params=(("w_H", 4.0),), label="stronger")
        write_result(tmp_path, other, {"episode": [0, 1], "RAG": [0.1, 0.2]})
    results = Results(tmp_path, PRESET)
    frame = results.episodes(evaluations("RAPO"))
    assert frame[["method", "nodes", "graph_seed"]].drop_duplicates().to_numpy().tolist() == [
        ["RAPO", 60, 0], ["RAPO", 60, 1],
    ]  # fmt: skip
    assert frame["RAG"].tolist() == pytest.approx([0.5, 1 / 3, 0.5, 4 / 3])
    assert set(results.episodes([other])["method"]) == {"stronger"}
    assert results.seconds() == 4.0


def test_budgets_and_trials_are_those_of_the_policies(tmp_path, write_result):
    paid = {"budget": 0.9, "dual": 0.0, "met": True, "spent": 0.5}
    first, second = evaluations("RAPO")
    write_result(tmp_path, first, {"RAG": [1, 1]}, costs={"trace": paid, "scar": paid})
    write_result(tmp_path, second, {"RAG": [1, 1]})
    results = Results(tmp_path, PRESET)
    frame = results.budgets([first, second])
    assert list(frame) == ["method", "graph_seed", "cost", "budget", "dual", "met", "spent"]
    assert frame["graph_seed"].tolist() == [0, 0] and frame["met"].all()
    assert results.tuning([first, second]).empty
    assert results.budgets([second]).empty


def test_ges_return_is_pooled_over_the_main_graphs(tmp_path, write_result):
    for seed, each in enumerate(evaluations("GE")):
        write_result(tmp_path, each, {"ReplayReturn": [90.0 + 20 * seed] * 2})
    assert Results(tmp_path, PRESET).base_return() == 100.0


def test_an_archive_is_read_like_the_folders_of_the_jobs(tmp_path, write_result):
    paid = {"budget": 0.9, "dual": 0.0, "met": True, "spent": 0.5}
    first, second = evaluations("RAPO")
    for seed, each in enumerate((first, second)):
        episodes = {"RAG": [0.5, 1 / 3 + seed], "ReplayReturn": [1.0, 2.0]}
        write_result(tmp_path, each, episodes, costs={"trace": paid} if seed else None)
    before = Results(tmp_path, PRESET)
    assert archive(tmp_path) == 2
    shutil.rmtree(tmp_path / "jobs")
    after = Results(tmp_path, PRESET)
    for name in ("episodes", "curves", "about", "budgets"):
        frames = [getattr(results, name)([first, second]) for results in (before, after)]
        pd.testing.assert_frame_equal(*frames, check_dtype=False)
    (job,) = jobs_of([first])
    assert job.done(tmp_path)
    # a new evaluation of an archived job is beside the archived ones, and goes into the archive
    other = replace(first, params=(("w_H", 4.0),))
    write_result(tmp_path, other, {"RAG": [0.1, 0.2], "ReplayReturn": [1.0, 2.0]})
    for _ in range(2):
        assert Results(tmp_path, PRESET).episodes([first, other])["RAG"].tolist() == (
            pytest.approx([0.5, 1 / 3, 0.1, 0.2])
        )
        assert archive(tmp_path) == 2
        shutil.rmtree(tmp_path / "jobs" / first.policy.key, ignore_errors=True)
        write_result(tmp_path, second, {"RAG": [0.5, 4 / 3], "ReplayReturn": [1.0, 2.0]})


def test_a_folder_without_jobs_is_not_archived(tmp_path):
    with pytest.raises(ValueError, match="holds no frames of jobs"):
        archive(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["folder", "evaluation", "episode"])
def test_what_is_missing_is_named_with_the_command(tmp_path, write_result, missing):
    first, second = evaluations("GE")
    write_result(tmp_path, first, {"ReplayReturn": [1.0, 2.0]})
    wanted = {
        "folder": second,
        "evaluation": replace(first, params=(("w_H", 4.0),)),
        "episode": replace(first, episodes=2),
    }[missing]
    if missing == "episode":
        path = tmp_path / "jobs" / first.policy.key / "episodes.parquet"
        pd.read_parquet(path)[:1].to_parquet(path)
    with pytest.raises(
        ValueError, match=r"missing in .*; rapo reproduce all --preset smoke"
    ) as caught:
        Results(tmp_path, PRESET).episodes([wanted])
    assert wanted.policy.key in str(caught.value) and f"--out {tmp_path}" in str(caught.value)
