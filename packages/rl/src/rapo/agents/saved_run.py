"""The folder of a trained run: its config, its frozen policy, and what going on with it needs.

| file | holds |
|---|---|
| `run.toml` | the config |
| `weights.safetensors` | networks, the normalisation of observations, and a few words about them |
| `resume.npz` | everything else that evolves: optimiser, duals, the state of the environment |
| `README.md` | the model card |

Nothing is pickled, so that reading the folder of a stranger runs no code of theirs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Discrete
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from rapo.agents.agent import Agent
from rapo.agents.cost_env import make_env
from rapo.agents.env_agent import EnvAgent
from rapo.agents.model import Model
from rapo.agents.normaliser import Normaliser
from rapo.agents.resolve import EpisodeRun, GymnasiumRun, open_episodes
from rapo.agents.run_config import RunConfig
from rapo.agents.run_file import NAME, read_run, write_run
from rapo.agents.shield import Shield
from rapo_core.checks import UserError
from rapo_core.files import written_whole
from rapo_core.version import VERSION

WEIGHTS, RESUME, CARD = "weights.safetensors", "resume.npz", "README.md"
"""Files of the folder beside `run.toml`."""
FORMAT = "3"
"""Format of the weights; another one is refused."""
OLD = "checkpoint.pt"
"""File of a run of version 0.2, which is no longer read."""
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class SavedRun:
    """What is known of a policy without going on with its training."""

    config: RunConfig
    arrays: Arrays
    """Parameters `policy.0`, `policy.1`, ..., `critic.0`, ... of the networks in their order, and
    `normaliser.count`, `normaliser.mean` and `normaliser.square`."""
    model: Mapping[str, Any]
    """Arguments of `Model`."""
    updates: int
    """Rollouts that the policy has learned from."""
    graph_hash: str
    """Hash of the graph; empty on a platform or another environment."""
    shield: Mapping[str, Any] | None = None
    """Threshold and reference of the shield around the policy, and how it was tuned."""

    @property
    def finished(self) -> bool:
        """Whether the policy was trained for all its steps."""
        return self.updates >= self.config.updates

    def save(self, folder: Path) -> None:
        """Write the config and the weights, each file whole or not at all."""
        about = {
            "format": FORMAT, "rapo": VERSION, "method": self.config.method,
            "model": json.dumps(self.model), "updates": str(self.updates),
            "graph_hash": self.graph_hash, "shield": json.dumps(self.shield),
        }  # fmt: skip
        write_run(folder / NAME, self.config)
        with written_whole(folder / WEIGHTS) as part:
            save_file(dict(self.arrays), part, about)

    def agent(self) -> Agent:
        """Make the bare policy."""
        model = Model(**self.model)
        for name, view in named_views(model).items():
            array = self.arrays.get(name)
            if array is None or array.shape != tuple(view.shape):
                shape = None if array is None else array.shape
                raise UserError(
                    f"the weights {name} have shape {shape}, the networks need {tuple(view.shape)}"
                )
            if not np.isfinite(array).all():
                raise UserError("the weights are not finite: the training diverged")
            view.copy_(torch.from_numpy(array))
        normaliser = Normaliser(model.inputs)
        normaliser.load({n: self.arrays[f"normaliser.{n}"] for n in ("count", "mean", "square")})
        return Agent(model, normaliser)

    def policy(self) -> Agent | Shield:
        """Make the policy, with its shield if it has one."""
        if self.shield is None:
            return self.agent()
        return Shield(self.agent(), self.shield["threshold"], reference=self.shield["reference"])


def saved_of(
    run: EpisodeRun | GymnasiumRun, learner: Any, shield: Mapping[str, Any] | None
) -> SavedRun:
    """Describe the policy of a learner as it is now.

    Args:
        run: what is trained.
        learner: a `PPO` of that run.
        shield: threshold and reference of a shield around the policy.
    """
    model = learner.model
    arrays = {name: view.numpy() for name, view in named_views(model).items()}
    for name, value in learner.normaliser.state().items():
        arrays[f"normaliser.{name}"] = np.asarray(value)
    sizes = {
        "kind": model.kind, "inputs": model.inputs, "actions": model.actions,
        "signals": 1 + len(learner.constraints), "hidden": run.config.ppo.hidden,
        "extra": model.extra,
    }  # fmt: skip
    return SavedRun(run.config, arrays, sizes, learner.updates, run.graph_hash, shield)


def named_views(model: Model) -> dict[str, torch.Tensor]:
    """Parameters of both networks by name, in the order in which the buffer holds them."""
    policy, critic = (values for values, _ in model.buffer.views)
    networks = {"policy": policy, "critic": critic}
    return {f"{name}.{i}": view for name, views in networks.items() for i, view in enumerate(views)}


def save_state(folder: Path, learner: Any) -> None:
    """Write everything that going on with a training needs."""
    with written_whole(folder / RESUME) as part, part.open("wb") as file:
        np.savez(file, **cast(Any, _flat(learner.save())))


def load_state(folder: Path) -> dict[str, Any] | None:
    """Read what `save_state` wrote; None if the run was cut before that."""
    path = folder / RESUME
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            return _nested(dict(file))
    except Exception as error:  # zip and NumPy each have their own
        raise UserError(f"{path} is damaged; remove {folder} and train again") from error


def load_run(folder: Path | str) -> SavedRun:
    """Load a run from its folder.

    Raises:
        UserError: there is no trained run, or one that this version cannot read.
    """
    folder = Path(folder)
    if folder.suffix == ".pt" or ((folder / OLD).exists() and not (folder / WEIGHTS).exists()):
        raise UserError(
            f"{folder} is a checkpoint of rapo 0.2, which this version does not read; train the "
            "policy again with rapo train METHOD --out RUN and name the folder RUN"
        )
    if folder.is_file():
        raise UserError(f"{folder} is a file; name the folder of the run, such as {folder.parent}")
    if not (folder / NAME).exists():
        raise UserError(f"there is no run at {folder}; rapo train METHOD --out {folder} makes one")
    if not (folder / WEIGHTS).exists():
        raise UserError(
            f"the run in {folder} was cut before it was first saved; rapo train goes on with it "
            "by --resume"
        )
    config = read_run(folder / NAME)
    about, arrays = _read_weights(folder / WEIGHTS)
    return SavedRun(
        config, arrays, json.loads(about["model"]), int(about["updates"]), about["graph_hash"],
        json.loads(about["shield"]),
    )  # fmt: skip


def _read_weights(path: Path) -> tuple[dict[str, str], Arrays]:
    """The description and the arrays of `weights.safetensors`."""
    try:
        with safe_open(path, "np") as file:
            about = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged: {error}") from error
    if about.get("format") != FORMAT:
        raise UserError(
            f"{path} has format {about.get('format')}, this rapo {VERSION} reads {FORMAT}; train "
            "the policy again with rapo train"
        )
    needed = ("model", "updates", "graph_hash", "shield")
    if missing := [name for name in needed if name not in about]:
        raise UserError(f"{path} is damaged: it lacks {', '.join(missing)}")
    return about, arrays


def open_saved(folder: Path | str) -> tuple[SavedRun, EpisodeRun]:
    """Load a run on a graph or a platform, and open what it was trained on.

    Raises:
        UserError: the graph is gone, or is not the one that was trained on.
    """
    saved = load_run(folder)
    file = saved.config.env_kwargs.get("graph")
    if saved.config.on_graph and file is not None and not Path(file).exists():
        raise UserError(f"{folder} was trained on {file}, which does not exist any more")
    run = open_episodes(saved.config)
    if run.graph_hash != saved.graph_hash:
        raise UserError(
            f"{folder} was trained on graph {saved.graph_hash}, but its config now gives "
            f"{run.graph_hash}; the graph file or the generator has changed"
        )
    return saved, run


def load_agent(folder: Path | str) -> tuple[Agent | Shield | EnvAgent, RunConfig]:
    """Load the frozen policy of a run, with its shield if it has one, and its config.

    `resolve(config).environment(1)` is what the policy was trained on, and `rapo.rsd.evaluate`
    takes both. The policy of a run on a foreign environment is an `EnvAgent`, which takes
    observations as that environment gives them.

    Raises:
        UserError: there is no such run, or its environment cannot be made again.
    """
    saved = load_run(folder)
    config = saved.config
    if config.has_episodes:
        return open_saved(folder)[0].policy(), config
    env = make_env(config.env, config.env_kwargs)
    actions = env.action_space
    assert isinstance(actions, Discrete)
    agent = EnvAgent(saved.agent(), env.observation_space, actions)
    env.close()
    return agent, config


def _flat(state: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Arrays of a state, those of its inner mappings by names such as `adam/step`."""
    flat: dict[str, npt.NDArray[Any]] = {}
    for name, value in state.items():
        inner = value if isinstance(value, Mapping) else None
        parts = {name: value} if inner is None else {f"{name}/{k}": v for k, v in inner.items()}
        flat |= {key: np.asarray(part) for key, part in parts.items()}
    return flat


def _nested(flat: Arrays) -> dict[str, Any]:
    """The state that `_flat` was given; empty mappings are known by name."""
    state: dict[str, Any] = {"adam": {}, "env": {}}
    for key, value in flat.items():
        name, slash, inner = key.partition("/")
        if slash:
            state.setdefault(name, {})[inner] = value
        else:
            state[name] = value
    return state
