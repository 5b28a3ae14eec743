"""The pieces that every experiment is made of: train, guard with a shield, evaluate.

A task is a value: its key says everything its result depends on, so results are the same however
tasks are scheduled, and what is there is not done again. Training leaves its folder under `work/`;
evaluations leave one small file each under `pieces/`, which is all that tables are made of.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.agents.agent import load_agent
from rapo.agents.methods import method_named
from rapo.agents.shield import Shield
from rapo.agents.train import train
from rapo.agents.train_config import TrainConfig
from rapo.cascade.engine import Cascade
from rapo.cascade.setting import ACTIONS, EXPOSURE, PHASES, REPLAY
from rapo.core.version import VERSION
from rapo.experiments.evaluation import shielded
from rapo.experiments.greedy import GreedyPolicy
from rapo.experiments.noisy_reports import NoisyReportsEnv
from rapo.experiments.pieces import existing, need_pyarrow, read_content, write_piece
from rapo.experiments.rsd_command import ConstantPolicy
from rapo.experiments.shields import make_shield
from rapo.rsd.result import TRACES, RSDResult
from rapo.rsd.runner import evaluate

Tell = Callable[[float], None]
"""Called by a running task with the share that is done."""

BIN = 10
"""Steps that one entry of a kept curve averages over."""

METRICS = ("RAG", "AUC_R", "SM_R", "ReplayReturn")
"""Columns that a piece has whoever wrote it."""


class Task(Protocol):
    """Something to run once, in a process of its own; what it leaves lies below a folder."""

    @property
    def key(self) -> str:
        """Names it among all tasks."""
        ...

    @property
    def needs(self) -> tuple[Task, ...]:
        """Tasks that must be done before."""
        ...

    def done(self, root: Path) -> bool:
        """Whether there is nothing left to do."""
        ...

    def run(self, root: Path, tell: Tell) -> None:
        """Do it, telling the share that is done from time to time."""
        ...


def digest(spec: Any) -> str:
    """Ten hexadecimal digits that stand for a plain value."""
    text = json.dumps(spec, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


ADDED: dict[str, dict[str, Any]] = {
    "": {"fit": None},
    "setting": {
        "edge_cap": 0.95, "stretch": 1.0, "echo": 0.0, "entering_weight": 1.0,
        "leaving_weight": 1.0, "factor": 0.0, "seeding": "ball", "inside_share": 1.0,
        "inside_spread": 0.0, "psi_min": 0.1, "loaded_support": 18, "loaded_share": 1.0,
        "loaded_spread": 0.0,
    },
    "ppo": {"steady": False, "cost_gamma": 0.99},
}  # fmt: skip
"""What configs have had since version 0.1, by their part, with the value that changes no earlier
result."""


def without_additions(values: Mapping[str, Any], part: str = "") -> dict[str, Any]:
    """Plain values without later additions that change nothing: earlier results keep their names.

    Args:
        values: of a training config, or of one part of it.
        part: which one, such as `setting`.
    """
    added = ADDED.get(part, {})
    return {
        name: without_additions(value, name) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if not (name in added and value == added[name])
    }


@dataclass(frozen=True)
class Train:
    """Train a method; leaves `work/<key>/checkpoint.pt`."""

    config: TrainConfig

    @property
    def key(self) -> str:
        """Name of the run and of its folder."""
        c = self.config
        name = f"{c.method}-n{c.nodes}-g{c.graph_seed}-s{c.seed}"
        return f"train-{name}-{digest(without_additions(c.given()))}"

    @property
    def needs(self) -> tuple[Task, ...]:
        """Tasks that must be done before."""
        return ()

    def checkpoint(self, root: Path) -> Path:
        """Where the policy is."""
        return root / "work" / self.key / "checkpoint.pt"

    def done(self, root: Path) -> bool:
        """Whether there is nothing left to do."""
        return (root / "work" / self.key / "summary.json").exists()

    def run(self, root: Path, tell: Tell) -> None:
        """Train, going on from an earlier checkpoint."""
        total = self.config.updates * self.config.ppo.rollout
        train(
            self.config,
            root / "work" / self.key,
            resume=True,
            report=lambda steps, told: tell(steps / total),
        )


@dataclass(frozen=True)
class Guard:
    """Shield-UM: tune the threshold of a shield around GE to RAPO's replay return."""

    ge: Train
    rapo: Train
    episodes: int = 20

    @property
    def key(self) -> str:
        """Name of the tuned shield and of its folder."""
        c = self.ge.config
        spec = [self.ge.key, self.rapo.key, self.episodes]
        return f"shield-n{c.nodes}-g{c.graph_seed}-{digest(spec)}"

    @property
    def config(self) -> TrainConfig:
        """Of the policy inside."""
        return replace(self.ge.config, method="Shield-UM")

    @property
    def needs(self) -> tuple[Task, ...]:
        """Both policies."""
        return (self.ge, self.rapo)

    def checkpoint(self, root: Path) -> Path:
        """Where the shielded policy is."""
        return root / "work" / self.key / "checkpoint.pt"

    def done(self, root: Path) -> bool:
        """Whether there is nothing left to do."""
        return self.checkpoint(root).exists()

    def run(self, root: Path, tell: Tell) -> None:
        """Tune it."""
        make_shield(
            self.ge.checkpoint(root),
            root / "work" / self.key,
            match=self.rapo.checkpoint(root),
            episodes=self.episodes,
        )


@dataclass(frozen=True)
class Constant:
    """Always the same action: a policy that nothing has to be run for."""

    config: TrainConfig
    """Graph, setting, regions and field constants of what it stands beside."""
    action: int

    @property
    def key(self) -> str:
        """Name of the policy; numbers of a training have no part in it."""
        c, whole = self.config, without_additions(self.config.given())
        parts = ("nodes", "graph_seed", "graph", "regions", "setting", "params", "fit")
        spec = [self.action, {name: whole[name] for name in parts if name in whole}]
        return f"constant-{ACTIONS[self.action]}-n{c.nodes}-g{c.graph_seed}-{digest(spec)}"


@dataclass(frozen=True)
class Greedy:
    """The action that serves most under the present fields, see `GreedyPolicy`."""

    config: TrainConfig
    """Graph, setting, regions and field constants of what it stands beside."""

    @property
    def key(self) -> str:
        """Name of the policy, as a constant action's."""
        return "greedy" + Constant(self.config, 0).key.removeprefix(f"constant-{ACTIONS[0]}")


@dataclass(frozen=True)
class Evaluate:
    """RSD of a policy as a method, perhaps with changed fields; leaves `pieces/<key>.parquet`."""

    policy: Train | Guard | Constant | Greedy
    method: str
    """As what: the policy's own method, or one that evaluates it."""
    episodes: int = 20
    seed: int = 0
    coupled: bool = False
    params: tuple[tuple[str, float], ...] = ()
    """Changed constants of the fields."""
    options: tuple[tuple[str, str], ...] = ()
    """Changed options of the environment, such as deformation; `misattribute` is the share of the
    sensitive nodes whose harm is credited to a wrong region, `lost` and `spread` are those of
    `NoisyReportsEnv`."""
    threshold: float | None = None
    """Of a shield, instead of its own."""
    label: str = ""
    """What tables call it; default the method."""

    @property
    def spec(self) -> dict[str, Any]:
        """Everything that the result depends on."""
        return {
            "policy": self.policy.key, "method": self.method, "episodes": self.episodes,
            "seed": self.seed, "coupled": self.coupled, "params": dict(self.params),
            "options": dict(self.options), "threshold": self.threshold,
        }  # fmt: skip

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.label or self.method

    @property
    def key(self) -> str:
        """Name of the piece."""
        c = self.policy.config
        return f"{self.name}-n{c.nodes}-g{c.graph_seed}-s{c.seed}-{digest(self.spec)}"

    @property
    def needs(self) -> tuple[Task, ...]:
        """The policy, unless it is there without training."""
        return () if isinstance(self.policy, Constant | Greedy) else (self.policy,)

    def piece(self, root: Path) -> Path:
        """Where the result is written to."""
        return root / "pieces" / f"{self.key}.parquet"

    def done(self, root: Path) -> bool:
        """Whether there is nothing left to do."""
        return existing(self.piece(root)).exists()

    def run(self, root: Path, tell: Tell) -> None:
        """Evaluate and write the piece at once, or not at all."""
        start = perf_counter()
        policy, config, folder = self._policy(root)
        env = config.evaluation(self.method)
        changed = replace(env.engine.params, **dict(self.params))
        options: dict[str, Any] = dict(self.options)
        share = options.pop("misattribute", None)
        if share is not None:
            options["credit"] = misattributed(env.engine, float(share), config.graph_seed)
        noise = {name: float(options.pop(name)) for name in ("lost", "spread") if name in options}
        env = env.like(1, params=changed, **options)
        if noise:
            env = NoisyReportsEnv(1, **noise, **env.options)
        result = evaluate(env, policy, self.episodes, self.seed, self.coupled)
        content = {
            "key": self.key,
            "spec": self.spec,
            "version": VERSION,
            "graph_hash": config.network.hash,
            "seconds": round(perf_counter() - start, 2),
            "training": None if folder is None else _training(folder / "summary.json"),
            "shield": None if folder is None else _shield(policy, folder),
            "episodes": _episodes(result),
            "curves": _curves(result),
        }
        write_piece(self.piece(root), content)

    def _policy(self, root: Path) -> tuple[Any, TrainConfig, Path | None]:
        """The policy as the method wants it, its config and the folder of its training."""
        row = method_named(self.method)
        if isinstance(self.policy, Constant | Greedy):
            if row.shield is not None or self.threshold is not None:
                raise ValueError(f"no shield guards a constant action or greedy, got {self.spec}")
            if isinstance(self.policy, Constant):
                return ConstantPolicy(self.policy.action), self.policy.config, None
            return GreedyPolicy(), self.policy.config, None
        path = self.policy.checkpoint(root)
        agent, config = load_agent(path)
        return shielded(agent, row, config, self.threshold), config, path.parent


def misattributed(engine: Cascade, share: float, seed: int) -> npt.NDArray[np.int32]:
    """Credit of harm, (n,), with a share of the sensitive nodes crediting a wrong live region.

    The nodes of a smaller share are among those of a larger one and err alike, so shares compare.

    Args:
        engine: its regions, graph and live regions.
        share: of the sensitive nodes, in [0, 1], rounded to whole nodes.
        seed: of the choice.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"the misattributed share must be in [0, 1], got {share}")
    live = engine.live
    if len(live) < 2:
        raise ValueError(f"a wrong live region needs two of them, got {live.tolist()}")
    rng = np.random.default_rng([seed, 1])
    nodes = rng.permutation(np.flatnonzero(engine.graph.sensitive))
    own = np.searchsorted(live, engine.regions[nodes])
    wrong = live[(own + rng.integers(1, len(live), len(nodes))) % len(live)]
    count = round(share * len(nodes))
    credit = engine.regions.astype(np.int32)
    credit[nodes[:count]] = wrong[:count]
    return credit


@dataclass(frozen=True)
class Piece:
    """What an evaluation found."""

    task: Evaluate
    frame: pd.DataFrame
    """A row per episode, with method, nodes and graph_seed."""
    curves: dict[str, Any] = field(repr=False)
    """By trace: mean and std over episodes, in bins of ten steps."""
    content: Mapping[str, Any] = field(repr=False)
    """The rest of the file."""


def read_piece(task: Evaluate, root: Path) -> Piece:
    """Read a piece; a missing or damaged one is named."""
    path = existing(task.piece(root))
    if not path.exists():
        raise ValueError(f"{path} is missing; {_command(root)} makes it")
    if path.suffix != ".json":
        need_pyarrow()  # its lack is no damage
    try:
        content = read_content(path)
        _check(content, task)
        frame = pd.DataFrame(content["episodes"])
        curves = {name: np.array(values, float) for name, values in content["curves"].items()}
        if content.get("key") != task.key or len(frame) != task.episodes:
            raise ValueError(f"not {task.episodes} episodes of {task.key}")
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}); remove it and run again") from error
    config = task.policy.config
    frame.insert(0, "method", task.name)
    frame.insert(1, "nodes", config.nodes)
    frame.insert(2, "graph_seed", config.graph_seed)
    return Piece(task, frame, curves, content)


def _command(root: Path) -> str:
    """What makes the pieces of a folder; another preset than the folder's would be refused."""
    try:
        name = json.loads((root / "manifest.json").read_text(encoding="utf-8"))["preset"]
    except (OSError, ValueError, KeyError, TypeError):
        name = None
    preset = f" --preset {name}" if isinstance(name, str) else ""
    return f"rapo reproduce all{preset} --out {root}"


def _check(content: Any, task: Evaluate) -> None:
    """Refuse what tables would stumble over later, where nobody knows the file any more."""
    if not isinstance(content, dict):
        raise ValueError("not an object")
    for name in ("episodes", "curves"):
        if not isinstance(content.get(name), dict):
            raise ValueError(f"{name} must be an object, got {content.get(name)!r:.40}")
    training, shield = (_object_or_none(content, name) for name in ("training", "shield"))
    _need_number("seconds", content.get("seconds"))
    if training.get("seconds") is not None:
        _need_number("seconds of training", training["seconds"])
    columns = list(METRICS)
    if "spec" in content:  # written by `run`, so all of it is there
        columns.append("OddsRatio")
        if method_named(task.method).shield is not None:
            for name in ("threshold", "transitions_per_step"):
                _need_number(f"{name} of shield", shield.get(name))
    for name in columns:
        if not isinstance(content["episodes"].get(name), list):
            raise ValueError(f"no column {name}")
        for value in content["episodes"][name]:
            if value is not None:
                _need_number(name, value)


def _object_or_none(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part that may be absent or null; then empty."""
    value = content.get(name)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"{name} must be an object or null, got {value!r:.40}")
    return value or {}


def _need_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {value!r:.40}")


def _episodes(result: RSDResult) -> dict[str, Any]:
    """The frame, and what ratios against other runs are made of, per episode."""
    out: dict[str, Any] = {name: result.frame[name].to_numpy() for name in result.frame.columns}
    out["trace"] = result.traces["cost_G"].mean(axis=1, dtype=np.float64)
    for phase in (EXPOSURE, REPLAY):
        name = PHASES[phase]
        reach, inside = result.of_phase("reach", phase), result.of_phase("sensitive_mass", phase)
        out[f"peak_{name}"] = reach.max(axis=1)
        out[f"reach_{name}"] = reach.mean(axis=1, dtype=np.float64)
        out[f"inside_{name}"] = inside.mean(axis=1, dtype=np.float64)
        out[f"served_{name}"] = result.of_phase("served", phase).mean(axis=1, dtype=np.float64)
        if result.laws is not None:
            law = result.laws[:, result.phase == phase].mean(axis=1, dtype=np.float64)
            for action in range(law.shape[1]):
                out[f"action{action}_{name}"] = law[:, action]
    if result.activity is not None:
        out["breadth_replay"] = np.full(
            len(result.frame), float((result.activity[REPLAY] > 0).sum())
        )
    return out


def _curves(result: RSDResult) -> dict[str, Any]:
    """Mean and std over episodes of every trace, in bins that do not cross phases."""
    starts = [s for p in range(3) for s in np.flatnonzero(result.phase == p)[::BIN]]
    out: dict[str, Any] = {"step": np.array(starts)}
    ends = [*starts[1:], len(result.phase)]
    for name in TRACES:
        trace = result.traces[name].astype(np.float64)
        with np.errstate(invalid="ignore"):
            sums = np.add.reduceat(np.nan_to_num(trace), starts, axis=1)
            counts = np.add.reduceat(np.isfinite(trace).astype(float), starts, axis=1)
            bins = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
            known = np.isfinite(bins)
            n = known.sum(axis=0)
            mean = np.where(n > 0, np.nansum(bins, axis=0) / np.maximum(n, 1), np.nan)
            spread = np.sqrt(np.nansum((bins - mean) ** 2, axis=0) / np.maximum(n - 1, 1))
        out[name] = mean
        out[f"{name}_std"] = spread
    out["end"] = np.array(ends)
    return out


def _training(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _shield(policy: Any, folder: Path) -> dict[str, Any] | None:
    """Threshold and compute of a shield, and how it was tuned."""
    if not isinstance(policy, Shield):
        return None
    curve = folder / "tuning.csv"
    tuning = pd.read_csv(curve).to_dict("list") if curve.exists() else None
    return {
        "threshold": policy.threshold,
        "reference": policy.reference,
        "transitions_per_step": policy.transitions_per_step,
        "tuning": tuning,
    }
