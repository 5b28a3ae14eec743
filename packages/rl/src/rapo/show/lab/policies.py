"""The lab's policies by name: a constant action, a run of `rapo train`, a model of SB3."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rapo.envs.field_summary import SUMMARY
from rapo.policies import ConstantPolicy, is_run
from rapo.rsd.saved_models import load_saved_model
from rapo.show.lab.request import ControlError, Variant, blame
from rapo.show.lab.sources import GraphSource, Source


@dataclass(frozen=True)
class LoadedPolicy:
    """A policy, the observations it was made for, and the Python code that loads it."""

    policy: Any
    observe: str
    action: int | None
    """Number of a constant action; None for any other policy."""
    code: tuple[str, ...]
    """Lines that make `policy`."""


def load_policy(source: Source, variant: Variant) -> LoadedPolicy:
    """The policy of a variant.

    Raises:
        ControlError: there is no such policy, or it was trained on another graph, platform or
            number of regions.
    """
    name = variant.policy
    if name in source.policies:
        action = source.policies.index(name)
        policy = ConstantPolicy(action, len(source.policies))
        return LoadedPolicy(policy, "x", action, (f"policy = lambda x: {action}  # {name}",))
    path = Path(name).expanduser()
    if is_run(str(path)):
        return _trained(source, variant, path)
    if name.endswith(".zip"):
        return _model(source, variant, path)
    raise ControlError(
        "policy",
        f"no policy is called {name!r}; choose {', '.join(source.policies)}, the folder of a run, "
        "or a model of Stable-Baselines3 (.zip)",
    )


@lru_cache(maxsize=4)
def _read_model(path: str, changed: int) -> Any:
    return load_saved_model(path)


@lru_cache(maxsize=4)
def _read_run(path: str, changed: int) -> tuple[Any, Any]:
    """A run as it was saved, and its policy."""
    from rapo.agents.saved_run import load_run

    saved = load_run(path)
    return saved, saved.policy()


def _trained(source: Source, variant: Variant, path: Path) -> LoadedPolicy:
    weights = path / "weights.safetensors"
    changed = weights.stat().st_mtime_ns if weights.exists() else 0
    try:
        saved, policy = blame("policy", lambda: _read_run(str(path), changed))
    except ImportError as error:
        raise ControlError(
            "policy", f"this needs torch; pip install 'rapo-rl[torch]' ({error})"
        ) from None
    env, graph_hash = saved.config.env, saved.graph_hash
    trained_on = f"graph {graph_hash}" if graph_hash else env
    if isinstance(source, GraphSource):
        here, fits = source.graph.hash, graph_hash == source.graph.hash
    else:
        here, fits = source.id.kind, env == source.id.kind
    if not fits or not hasattr(policy, "act"):
        raise ControlError(
            "policy",
            f"{path} was trained on {trained_on}, this is {here}; open what it was trained on",
        )
    bare = getattr(policy, "policy", policy)
    observe = _observed(source.make(variant), int(bare.model.inputs), str(path))
    code = (
        "# load_agent also gives its config",
        f"policy, _ = rapo.agents.load_agent({str(path)!r})",
    )
    return LoadedPolicy(policy, observe, None, code)


def _model(source: Source, variant: Variant, path: Path) -> LoadedPolicy:
    if not path.is_file():
        raise ControlError("policy", f"there is no file {path}")
    model = blame("policy", lambda: _read_model(str(path), path.stat().st_mtime_ns))
    env = source.make(variant)
    if model.action_space != env.single_action_space:
        raise ControlError(
            "policy",
            f"{path} acts in {model.action_space}, here are {env.single_action_space}; choose a "
            "model of this environment",
        )
    shape = getattr(model.observation_space, "shape", None) or (0,)
    observe = _observed(env, int(shape[0]), str(path))
    code = (
        "from rapo.rsd.saved_models import load_saved_model",
        f"policy = load_saved_model({str(path)!r})",
    )
    return LoadedPolicy(model, observe, None, code)


def _observed(env: Any, inputs: int, path: str) -> str:
    """The `observe` with which an environment shows a policy that many numbers."""
    regions, size = int(env.engine.G.shape[1]), int(env.single_observation_space.shape[0])
    sizes = {"x": size, "xsummary": size + SUMMARY, "xGH": size + 2 * regions}
    for name, count in sizes.items():
        if count == inputs:
            return name
    raise ControlError(
        "regions" if inputs > size else "policy",
        f"{path} sees {inputs} entries; with {regions} regions there are {sizes['x']} (x), "
        f"{sizes['xGH']} (with the fields) or {sizes['xsummary']} (with their summary): choose the "
        "regions it was trained with",
    )
