"""What `rapo train --env` does with its words: the methods on a platform, or constrained PPO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from rapo.agents.config import PPOConfig
from rapo.agents.env_config import EnvConfig
from rapo.agents.platform_config import PlatformConfig, is_platform
from rapo.agents.run_file import Run, env_config, env_options
from rapo.paper.train_command import refuse_taken, train_and_tell
from rapo.paper.train_words import parse_count, parse_seeds, ppo_with_changes
from rapo_core.checks import UserError


def train_env_from_words(
    method: str | None,
    *,
    base: Run | None,
    env: str | None,
    env_kwargs: str | None,
    cost: str | None,
    budget: float | None,
    delay: int | None,
    seeds: str | None,
    steps: str | None,
    changes: Sequence[str],
    out: Path | None,
    resume: bool,
    track: Sequence[str] | None,
    jobs: int | None,
) -> None:
    """`rapo train --env`: see its help for the arguments."""
    console = Console()
    given = {
        "method": method, "env": env, "cost": cost, "budget": budget, "delay": delay,
        "env_kwargs": None if env_kwargs is None else env_options("--env-kwargs", env_kwargs),
        "steps": None if steps is None else parse_count("steps", steps),
    }  # fmt: skip
    config = _config(base, {k: v for k, v in given.items() if v is not None}, changes)
    ppo, env = config.ppo, config.env
    configs = [
        replace(config, seed=seed) for seed in parse_seeds("--seed", seeds or str(config.seed))
    ]
    folders = [_folder(out, c, len(configs) > 1) for c in configs]
    taken = refuse_taken(folders, resume)
    # whatever is wrong shows before anything is written
    (config.task() if isinstance(config, EnvConfig) else config.environment(1)).close()
    rounded = config.updates * ppo.rollout
    console.print(
        f"{config.method} on {config.env}: {rounded:,} steps ({config.updates:,} x {ppo.rollout})",
        highlight=False,
    )
    if taken and isinstance(config, EnvConfig):
        console.print(f"{env} has no snapshot: going on with new episodes", highlight=False)
    train_and_tell(console, configs, folders, base=base, resume=resume, track=track, jobs=jobs)


def _config(
    base: Run | None, given: Mapping[str, Any], changes: Sequence[str]
) -> EnvConfig | PlatformConfig:
    """What the options say, over what a run file does."""
    before = {} if base is None else base.config.to_dict()
    before.pop("platform", None)
    values = {**before, **given}
    if "method" not in values:
        raise UserError("give a method such as SS, or --config with the run.toml of a run")
    platform = values.get("cost") is None and is_platform(values["env"])
    ppo = PPOConfig() if platform else PPOConfig.for_gymnasium()
    if base is not None:
        ppo = base.config.ppo
    return env_config({**values, "ppo": ppo_with_changes(ppo, changes)})


def _folder(out: Path | None, config: EnvConfig | PlatformConfig, several: bool) -> Path:
    """Folder of a run: `--out` itself for one run, a folder in it for each of several."""
    if out is None:
        place = config.env.rpartition(":")[2].replace("/", "-")
        return Path("runs") / f"{config.method}-{place}-s{config.seed}"
    return out / f"s{config.seed}" if several else out
