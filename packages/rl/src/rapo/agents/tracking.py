"""Services that record the progress of a run: TensorBoard, Weights & Biases, MLflow.

A tracker is a class with `write` and `close`, made from the folder and the config of the run. A
class that is added to `TRACKERS` can be named in `RunConfig.track` and by `rapo train --track`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from rapo_core.checks import UserError
from rapo_core.files import written_whole

IDS = "tracking.json"
"""File of a run's folder with the id of the run in each service, under which a resumed run goes on.
"""
LONGEST = 100
"""Longest text of a value that MLflow gets; longer values are in `run.toml` alone."""
AT_ONCE = 100
"""Number of parameters in one request to MLflow."""


class Tracker(Protocol):
    """A service that records the progress of a run."""

    def __init__(self, out: Path, config: Mapping[str, Any], steps: int) -> None:
        """Begin, or go on after `steps` steps, with the run in folder `out`."""

    def write(self, steps: int, numbers: Mapping[str, float]) -> None:
        """Record the numbers of the rollout that ended after `steps` steps."""

    def close(self) -> None:
        """End the record; nothing more will come."""


class TensorBoard:
    """Event files in `out/tensorboard`; a resumed run replaces what it had written later."""

    def __init__(self, out: Path, config: Mapping[str, Any], steps: int) -> None:
        writer = import_module("torch.utils.tensorboard").SummaryWriter
        self.events = writer(str(out / "tensorboard"), purge_step=steps + 1)

    def write(self, steps: int, numbers: Mapping[str, float]) -> None:
        """Write a scalar for each number."""
        for name, value in _named(numbers):
            self.events.add_scalar(name, value, steps)

    def close(self) -> None:
        """Finish the file."""
        self.events.close()


class WeightsAndBiases:
    """A run of the project WANDB_PROJECT, default rapo; its files are in `out/wandb`.

    All else is as W&B's own variables say: WANDB_MODE=offline writes files and asks no server.
    """

    def __init__(self, out: Path, config: Mapping[str, Any], steps: int) -> None:
        wandb = import_module("wandb")
        project = os.environ.get("WANDB_PROJECT", "rapo")
        self.run = wandb.init(
            project=project, name=out.name, dir=str(out), config=dict(config), resume="allow",
            id=_id_of(out, "wandb", lambda: uuid4().hex),
        )  # fmt: skip
        self.run.define_metric("*", step_metric="steps")

    def write(self, steps: int, numbers: Mapping[str, float]) -> None:
        """Write one row. Steps are a column, as W&B's own counter may not go back."""
        self.run.log({"steps": steps, **dict(_named(numbers))})

    def close(self) -> None:
        """Send what has not been sent yet."""
        self.run.finish()


class MLflow:
    """A run of the experiment MLFLOW_EXPERIMENT_NAME, default rapo, at MLFLOW_TRACKING_URI."""

    def __init__(self, out: Path, config: Mapping[str, Any], steps: int) -> None:
        self.mlflow = import_module("mlflow")
        self.client = self.mlflow.MlflowClient()
        self.run = _id_of(out, "mlflow", lambda: self._new(out.name, config))
        self.client.update_run(self.run, status="RUNNING")

    def _new(self, name: str, config: Mapping[str, Any]) -> str:
        title = os.environ.get("MLFLOW_EXPERIMENT_NAME", "rapo")
        earlier = self.client.get_experiment_by_name(title)
        number = self.client.create_experiment(title) if earlier is None else earlier.experiment_id
        run = str(self.client.create_run(number, run_name=name).info.run_id)
        values = [(key, text) for key, text in _flat(config) if len(text) <= LONGEST]
        for i in range(0, len(values), AT_ONCE):
            piece = [self.mlflow.entities.Param(*pair) for pair in values[i : i + AT_ONCE]]
            self.client.log_batch(run, params=piece)
        return run

    def write(self, steps: int, numbers: Mapping[str, float]) -> None:
        """Write a metric for each number that has a value."""
        now = int(1000 * time.time())
        metric = self.mlflow.entities.Metric
        made = [metric(k, float(v), now, steps) for k, v in _named(numbers) if isfinite(v)]
        self.client.log_batch(self.run, metrics=made)

    def close(self) -> None:
        """Mark the run as ended."""
        self.client.set_terminated(self.run)


TRACKERS: dict[str, type[Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
    "mlflow": MLflow,
}
_MODULES = {"tensorboard": "torch.utils.tensorboard", "wandb": "wandb", "mlflow": "mlflow"}
"""What each needs; the extra of the package is called like the tracker."""


def checked_trackers(names: Iterable[str]) -> tuple[str, ...]:
    """The names, once each, if there are such trackers and their packages are here.

    Raises:
        ValueError: a name is unknown, or what it needs is not installed.
    """
    chosen = tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in TRACKERS:
            raise UserError(f"track must be of {', '.join(TRACKERS)}, got {name!r}")
        try:
            import_module(_MODULES[name])
        except ImportError:
            raise UserError(
                f"{name} is not here: pip install 'rapo-rl[{name}]', or leave it out of --track"
            ) from None
    return chosen


def open_trackers(
    names: Iterable[str], out: Path, config: Mapping[str, Any], steps: int
) -> list[Tracker]:
    """The trackers of a run that has done `steps` steps.

    Raises:
        ValueError: one of them cannot begin, such as a service that nobody has logged in to.
    """
    made: list[Tracker] = []
    for name in names:
        try:
            made.append(TRACKERS[name](out, config, steps))
        except Exception as error:
            for tracker in made:
                tracker.close()
            reason = " ".join(str(error).split())
            raise UserError(f"{name} could not begin: {reason}") from error
    return made


def _named(numbers: Mapping[str, float]) -> list[tuple[str, float]]:
    """`cost_harm` as `cost/harm`: services group names by what is before the stroke."""
    return [(name.replace("_", "/", 1), value) for name, value in numbers.items()]


def _flat(config: Mapping[str, Any], name: str = "") -> list[tuple[str, str]]:
    """Values of nested tables by dotted names."""
    out: list[tuple[str, str]] = []
    for key, value in config.items():
        inner = isinstance(value, Mapping)
        out += _flat(value, f"{name}{key}.") if inner else [(f"{name}{key}", str(value))]
    return out


def _id_of(out: Path, name: str, new: Any) -> str:
    """The id under which a service knows the run; a new one is kept for the next sitting."""
    path = out / IDS
    known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    if name not in known:
        known[name] = new()
        with written_whole(path) as part:
            part.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    return known[name]
