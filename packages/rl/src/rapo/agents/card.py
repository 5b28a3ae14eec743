"""The model card of a run: what was trained, on what, how well its budgets were met."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rapo.agents.methods import METHODS
from rapo.agents.saved_run import WEIGHTS, SavedRun
from rapo_core.version import VERSION


def model_card(saved: SavedRun, summary: Mapping[str, Any] | None = None) -> str:
    """The text of `README.md` in the folder of a run.

    Args:
        saved: the run.
        summary: what its training came to; None for a shield around a policy trained elsewhere.
    """
    config, model = saved.config, saved.model
    place = config.env
    if config.on_graph:
        file = config.env_kwargs.get("graph")
        made = file or f"{config.nodes} nodes, graph seed {config.graph_seed}"
        place += f" ({made}; graph {saved.graph_hash})"
    steps = saved.updates * config.ppo.rollout
    of = "" if saved.finished else f" of {config.updates * config.ppo.rollout:,}"
    lines = [
        f"# {config.method} on {config.env}",
        "",
        f"A policy of the method {config.method} ({METHODS[config.method].about}), trained by rapo "
        f"{VERSION}.",
        "",
        f"- Environment: {place}",
        f"- Training: {steps:,}{of} steps, seed {config.seed}",
        f"- Network: {model['kind']}, {model['inputs']} observations, {model['actions']} actions, "
        f"in `{WEIGHTS}`",
    ]
    if saved.shield is not None:
        lines.append(f"- Shield: threshold {saved.shield['threshold']:.4g}")
    for name, budget in (summary or {}).get("budgets", {}).items():
        cost = "unknown" if budget["cost"] is None else f"{budget['cost']:.4g}"
        verdict = "met" if budget["met"] else "not met"
        lines.append(f"- Budget of {name}: {budget['budget']:.4g}, cost {cost}: {verdict}")
    lines += [
        "",
        "`rapo rsd FOLDER` tells whether the policy repeats what harmed; `rapo train --config "
        "FOLDER/run.toml --out OTHER` trains it again. Its behaviour is known in this simulated "
        "environment alone.",
        "",
    ]
    return "\n".join(lines)
