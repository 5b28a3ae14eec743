"""Trackers, each for real and offline: what they are told is what `progress.csv` holds."""

import json
import struct

import pandas as pd
import pytest

from rapo.agents import tracking
from rapo.agents.tracking import checked_trackers, open_trackers
from rapo.agents.train import train


def progress(folder):
    """Rows of a run by steps, with the names that services know."""
    frame = pd.read_csv(folder / "progress.csv").set_index("steps")
    return frame.rename(columns=lambda name: name.replace("_", "/", 1))


def close(value):
    return pytest.approx(value, rel=1e-5, abs=1e-12)  # the file has six digits


def cut(made, out, track):
    """Two sittings: four rollouts, of which the fourth is told twice, as after a kill."""
    train(made(3, track=track), out)
    train(made(4, track=track), out, resume=True)


@pytest.fixture
def sittings(config, tmp_path):
    """Runs both sittings with a tracker and gives the folder."""

    def run(name):
        cut(lambda updates, **also: config("RAPO", updates, **also), tmp_path / "run", [name])
        return tmp_path / "run"

    return run


def test_tensorboard(sittings):
    pytest.importorskip("tensorboard", reason="needs pip install 'rapo-rl[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = sittings("tensorboard")
    found = EventAccumulator(str(out / "tensorboard"))
    found.Reload()
    rows = progress(out)
    assert set(found.Tags()["scalars"]) == set(rows.columns)
    for name, column in rows.items():
        told = {event.step: event.value for event in found.Scalars(name)}
        assert told == close(column.to_dict())


def test_wandb_offline(sittings, monkeypatch):
    pytest.importorskip("wandb", reason="needs pip install 'rapo-rl[wandb]'")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    out = sittings("wandb")
    (known,) = json.loads((out / "tracking.json").read_text()).values()
    # W&B appends `-1` to a folder's name if both sittings begin within the same second.
    files = sorted((out / "wandb").glob(f"offline-run-*-{known}*/run-{known}.wandb"))
    assert len(files) == 2  # both sittings under one id
    rows, told = progress(out), {}
    for file in files:
        for row in history(file):
            told[int(row["steps"])] = row
    assert sorted(told) == rows.index.tolist()
    for steps, row in rows.iterrows():
        assert {name: told[steps][name] for name in rows.columns} == close(row.to_dict())


def history(path):
    """Rows of a file of W&B."""
    from wandb.proto import wandb_internal_pb2

    rows = []
    for data in records(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            rows.append({i.key or i.nested_key[0]: json.loads(i.value_json) for i in items})
    return [row for row in rows if "steps" in row]


def records(data):
    """Records of a LevelDB log, which W&B's files are after seven bytes of their own.

    Blocks of 32 KiB hold pieces: a checksum, a length, a kind (whole, first, middle, last).
    """
    at, whole = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        size, kind = struct.unpack_from("<HB", data, at + 4)
        if left < 7 or kind == 0:  # the rest of a block is empty
            at += left
            continue
        whole += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            yield whole
            whole = b""


def test_mlflow_in_a_folder(sittings, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="needs pip install 'rapo-rl[mlflow]'")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(None)
    out = sittings("mlflow")
    client = mlflow.MlflowClient()
    place = client.get_experiment_by_name("rapo").experiment_id
    (run,) = client.search_runs([place])
    assert run.info.status == "FINISHED" and run.info.run_name == "run"
    assert run.data.params["method"] == "RAPO" and run.data.params["ppo.rollout"] == "256"
    rows = progress(out)
    for name, column in rows.items():
        told = {m.step: m.value for m in client.get_metric_history(run.info.run_id, name)}
        assert told == close(column.dropna().to_dict())


def test_unknown_and_missing_trackers_are_named_before_anything_is_written(
    tmp_path, config, monkeypatch
):
    with pytest.raises(ValueError, match="tensorboard, wandb, mlflow, got 'paper'"):
        train(config("GE", 1, track=["paper"]), tmp_path / "run")
    monkeypatch.setitem(tracking._MODULES, "wandb", "no_such_module")
    with pytest.raises(ValueError, match=r"pip install 'rapo-rl\[wandb\]'"):
        train(config("GE", 1, track=["wandb"]), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert checked_trackers(["tensorboard", "tensorboard"]) == ("tensorboard",)


def test_a_tracker_that_cannot_begin_is_one_line_and_those_before_it_are_closed(
    tmp_path, monkeypatch
):
    closed = []

    class Fine:
        def __init__(self, *given):
            pass

        def close(self):
            closed.append(self)

    class Refused:
        def __init__(self, *given):
            raise RuntimeError("nobody has\nlogged in")

    monkeypatch.setattr(tracking, "TRACKERS", {"fine": Fine, "refused": Refused})
    with pytest.raises(ValueError, match=r"^refused could not begin: nobody has logged in$"):
        open_trackers(["fine", "refused"], tmp_path, {}, 0)
    assert len(closed) == 1


def test_values_too_long_for_a_service_are_left_out_of_its_parameters():
    config = {"a": {"b": 1, "c": {"d": "x"}}, "long": list(range(1000))}
    assert tracking._flat(config)[:2] == [("a.b", "1"), ("a.c.d", "x")]
