"""What `rapo train --env` does with its words: the methods on a platform, or constrained PPO."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from rapo.agents.config import PPOConfig
from rapo.agents.env_config import EnvConfig
from rapo.agents.platform_config import PlatformConfig, is_platform
from rapo.experiments.train_command import (
    parse_count,
    parse_seeds,
    ppo_with_changes,
    stopped,
    tell,
    train_all,
)


def train_env_from_words(
    method: str,
    *,
    env: str,
    env_kwargs: str | None,
    cost: str | None,
    budget: float | None,
    delay: int,
    seeds: str,
    steps: str,
    changes: Sequence[str],
    out: Path | None,
    resume: bool,
    tensorboard: bool,
    jobs: int | None,
) -> None:
    """`rapo train --env`: see its help for the arguments."""
    console = Console()
    shared: dict[str, Any] = {
        "method": method, "env": env, "env_kwargs": _options(env_kwargs),
        "steps": parse_count("steps", steps),
    }  # fmt: skip
    config: EnvConfig | PlatformConfig
    if cost is None and is_platform(env):
        if delay:
            raise ValueError(f"{env} knows the delay of its harm; leave --delay {delay} out")
        ppo = ppo_with_changes(PPOConfig(), changes)
        config = PlatformConfig(**shared, ppo=ppo)
        config = config if budget is None else replace(config, budget=budget)
    else:
        ppo = ppo_with_changes(PPOConfig.for_gymnasium(), changes)
        config = EnvConfig(**shared, cost=cost, budget=budget, delay=delay, ppo=ppo)
    configs = [replace(config, seed=seed) for seed in parse_seeds("--seed", seeds)]
    folders = [_folder(out, c, len(configs) > 1) for c in configs]
    taken = [folder for folder in folders if (folder / "config.json").exists()]
    if taken and not resume:
        raise ValueError(f"{taken[0]} holds a run; go on with --resume, or choose another --out")
    # whatever is wrong shows before anything is written
    (config.task() if isinstance(config, EnvConfig) else config.environment(1)).close()
    rounded = config.updates * ppo.rollout
    console.print(
        f"{config.method} on {config.env}: {rounded:,} steps ({config.updates:,} x {ppo.rollout})",
        highlight=False,
    )
    if taken and isinstance(config, EnvConfig):
        console.print(f"{env} has no snapshot: going on with new episodes", highlight=False)
    try:
        found = train_all(
            configs, folders, jobs=os.cpu_count() or 1 if jobs is None else jobs, resume=resume,
            tensorboard=tensorboard,
        )  # fmt: skip
    except KeyboardInterrupt:
        raise stopped(folders, sys.argv[1:], resume) from None
    for folder, summary in zip(folders, found, strict=True):
        tell(console, folder, summary)


def _options(text: str | None) -> Mapping[str, Any]:
    """Keyword arguments of an environment from JSON."""
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        raise ValueError(f"--env-kwargs must be JSON such as '{{\"x\": 1}}': {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"--env-kwargs must be a JSON object, got {text}")
    return found


def _folder(out: Path | None, config: EnvConfig | PlatformConfig, several: bool) -> Path:
    """Folder of a run: `--out` itself for one run, a folder in it for each of several."""
    if out is None:
        place = config.env.rpartition(":")[2].replace("/", "-")
        return Path("runs") / f"{config.method}-{place}-s{config.seed}"
    return out / f"s{config.seed}" if several else out
