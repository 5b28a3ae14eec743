"""Policies by name: a constant action, a run of `rapo train`, a model of SB3."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rapo.envs.field_summary import SUMMARY
from rapo.policies import ConstantPolicy, is_run
from rapo.rsd.saved_models import load_saved_model
from rapo.show.lab.request import ControlError, Side, blamed
from rapo.show.lab.sources import GraphSource, Source

OBSERVED = ("x", "xsummary", "xGH")


@dataclass(frozen=True)
class Found:
    """A policy, what it has to be shown, and how Python gets it."""

    policy: Any
    observe: str
    action: int | None
    """Of a constant one."""
    code: tuple[str, ...]
    """Lines that make `policy`."""


def find_policy(source: Source, side: Side) -> Found:
    """The policy of a side.

    Raises:
        ControlError: no such policy, or one that another graph, platform or number of regions was
            trained on.
    """
    words = side.policy
    if words in source.policies:
        action = source.policies.index(words)
        policy = ConstantPolicy(action, len(source.policies))
        return Found(policy, "x", action, (f"policy = lambda x: {action}  # {words}",))
    if words.endswith(".zip"):
        return _model(source, side)
    if is_run(str(Path(words).expanduser())):
        return _trained(source, side)
    raise ControlError(
        "policy",
        f"no policy is called {words!r}; choose {', '.join(source.policies)}, the folder "
        "of a run, or a model of Stable-Baselines3 (.zip)",
    )


@lru_cache(maxsize=4)
def _loaded(path: str, changed: int) -> Any:
    return load_saved_model(path)


@lru_cache(maxsize=4)
def _read(path: str, changed: int) -> tuple[Any, Any]:
    """A run as it was saved, and its policy."""
    from rapo.agents.saved_run import load_run

    saved = load_run(path)
    return saved, saved.policy()


def _changed(path: str) -> int:
    at = Path(path).expanduser()
    if not at.is_file():
        raise ControlError("policy", f"there is no file {path}")
    return at.stat().st_mtime_ns


def _trained(source: Source, side: Side) -> Found:
    path = str(Path(side.policy).expanduser())
    weights = Path(path) / "weights.safetensors"
    changed = weights.stat().st_mtime_ns if weights.exists() else 0
    try:
        saved, policy = blamed("policy", lambda: _read(path, changed))
    except ImportError as error:
        raise ControlError(
            "policy", f"this needs torch; pip install 'rapo-rl[torch]' ({error})"
        ) from None
    env, graph_hash = saved.config.env, saved.graph_hash
    on = f"graph {graph_hash}" if graph_hash else env
    if isinstance(source, GraphSource):
        here, fits = source.graph.hash, graph_hash == source.graph.hash
    else:
        here, fits = source.place.kind, env == source.place.kind
    code = "policy, _ = rapo.agents.load_agent({!r})"
    if not fits or not hasattr(policy, "act"):
        raise ControlError(
            "policy", f"{path} was trained on {on}, this is {here}; open what it was trained on"
        )
    bare = getattr(policy, "policy", policy)
    observe = _shown(source, side, int(bare.model.inputs), path)
    return Found(policy, observe, None, ("# load_agent also gives its config", code.format(path)))


def _model(source: Source, side: Side) -> Found:
    path = side.policy
    changed = _changed(path)
    model = blamed("policy", lambda: _loaded(path, changed))
    env = source.make(side)
    if model.action_space != env.single_action_space:
        raise ControlError(
            "policy",
            f"{path} acts in {model.action_space}, here are {env.single_action_space}; choose a "
            "model of this environment",
        )
    shape = getattr(model.observation_space, "shape", None) or (0,)
    observe = _shown(source, side, int(shape[0]), path)
    lines = (
        "from rapo.rsd.saved_models import load_saved_model",
        f"policy = load_saved_model({path!r})",
    )
    return Found(model, observe, None, lines)


def _shown(source: Source, side: Side, inputs: int, path: str) -> str:
    """What to show a policy that sees so many entries."""
    engine = source.make(side).engine
    regions = int(engine.G.shape[1])
    size = int(source.make(side).single_observation_space.shape[0])  # type: ignore[index]
    sizes = {"x": size, "xsummary": size + SUMMARY, "xGH": size + 2 * regions}
    for name in OBSERVED:
        if sizes[name] == inputs:
            return name
    raise ControlError(
        "regions" if inputs > size else "policy",
        f"{path} sees {inputs} entries; with {regions} regions there are {sizes['x']} (x), "
        f"{sizes['xGH']} (with the fields) or {sizes['xsummary']} (with their summary): choose the "
        "regions it was trained with",
    )
