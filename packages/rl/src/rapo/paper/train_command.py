"""What `rapo train` does with its words: configs, run folders, several runs side by side."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, cast

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from rapo.agents.methods import Method, method_named
from rapo.agents.run_file import AnyConfig, Run
from rapo.agents.tracking import checked_trackers
from rapo.agents.train import train
from rapo.agents.train_config import TrainConfig
from rapo.graphs.fit import Fit
from rapo.graphs.idle import IdleWarning
from rapo.paper.pool import as_they_end, channel, pool
from rapo.paper.shields import make_shield
from rapo.paper.train_words import graph_configs
from rapo_core.checks import UserError, whole_number

Numbers = dict[str, float]
_WORDS = {
    "graph_seeds": "--graph-seed", "seeds": "--seed", "wanted_fit": "--fit", "changes": "--set",
}  # fmt: skip
"""Options that are called otherwise here."""


def train_from_words(
    method: str | None,
    *,
    base: Run | None,
    policy: Path | None,
    match: Path | None,
    threshold: float | None,
    out: Path | None,
    resume: bool,
    track: Sequence[str] | None,
    jobs: int | None,
    **options: Any,
) -> None:
    """`rapo train`: see its help for the arguments; `options` are those of `graph_configs`."""
    console = Console()
    before = None if base is None else base.config
    assert before is None or isinstance(before, TrainConfig)
    if method is None and before is None:
        raise UserError("give a method such as RAPO, or --config with the run.toml of a run")
    row = method_named(method or cast(TrainConfig, before).method)
    if row.shield is None and not (policy is None and match is None and threshold is None):
        raise UserError(f"--policy, --match and --threshold are for shields, got {row.name}")
    if policy is not None or match is not None:
        more = {"config": base, "resume": resume or None, "track": track, "jobs": jobs}
        idle = [_WORDS.get(k, f"--{k}") for k, v in {**options, **more}.items() if v]
        if idle:
            raise UserError(f"a shield takes these from --policy: leave out {', '.join(idle)}")
        _guard(console, row, policy, match, threshold, out)
        return
    configs = graph_configs(before, method, **options)
    if base is not None and row.shield is not None and threshold is None:
        threshold = base.threshold
    config = configs[0]
    folders = [run_folder(out, c, len(configs) > 1) for c in configs]
    refuse_taken(folders, resume)
    rounded = config.updates * config.ppo.rollout
    console.print(
        f"{config.method}: {rounded:,} steps ({config.updates:,} x {config.ppo.rollout})",
        highlight=False,
    )
    for config in configs:
        _tell_fit(console, config)
    train_and_tell(
        console, configs, folders, base=base, resume=resume, track=track, jobs=jobs,
        threshold=threshold,
    )  # fmt: skip


def refuse_taken(folders: Sequence[Path], resume: bool) -> list[Path]:
    """Refuse folders that hold a run, unless it is to go on; those that do."""
    taken = [folder for folder in folders if (folder / "config.json").exists()]
    if taken and not resume:
        raise UserError(f"{taken[0]} holds a run; go on with --resume, or choose another --out")
    return taken


def train_and_tell(
    console: Console,
    configs: Sequence[AnyConfig],
    folders: Sequence[Path],
    *,
    base: Run | None,
    resume: bool,
    track: Sequence[str] | None,
    jobs: int | None,
    threshold: float | None = None,
) -> None:
    """Train every config in its folder and say what it came to; Ctrl-C says how to go on."""
    try:
        found = train_all(
            configs, folders, jobs=os.cpu_count() or 1 if jobs is None else jobs, resume=resume,
            track=chosen_trackers(track, base), threshold=threshold,
        )  # fmt: skip
    except KeyboardInterrupt:
        raise stopped(folders, sys.argv[1:], resume) from None
    for folder, summary in zip(folders, found, strict=True):
        tell(console, folder, summary)


def chosen_trackers(track: Sequence[str] | None, base: Run | None) -> tuple[str, ...]:
    """What is told the progress: as the options say, else as the run file does."""
    found = track if track is not None else () if base is None else base.track
    return checked_trackers(found)


def stopped(folders: Sequence[Path], words: Sequence[str], resume: bool) -> KeyboardInterrupt:
    """Ctrl-C with the command that goes on."""
    words = [*words] if resume else [*words, "--resume"]
    place = folders[0] if len(folders) == 1 else f"{folders[0]} and {len(folders) - 1} more"
    return KeyboardInterrupt(
        f"to go on from the last checkpoint in {place}: {shlex.join(['rapo', *words])}"
    )


def _tell_fit(console: Console, config: TrainConfig) -> None:
    """What was fitted; making the environment warns if its memory is idle."""
    if isinstance(config.settled.fit, Fit):
        console.print(f"fit: {config.settled.fit}", highlight=False)
    config.environment(1)


def _guard(
    console: Console,
    row: Method,
    policy: Path | None,
    match: Path | None,
    threshold: float | None,
    out: Path | None,
) -> None:
    """A shield around a GE that is trained already."""
    if policy is None or (match is None) != (row.shield == "fixed"):
        wanted = "--policy and --match" if row.shield == "matched" else "--policy alone"
        raise UserError(f"{row.name} takes {wanted}, got --policy {policy} and --match {match}")
    folder = Path("runs") / row.name if out is None else out
    with console.status("tuning the threshold") as status:
        made = make_shield(
            policy, folder, match=match, threshold=threshold,
            report=lambda t, r: status.update(f"threshold {t:.3f} keeps {r:.3f} of GE's return"),
        )  # fmt: skip
    text = f"{row.name}: threshold {made['threshold']:.4f}"
    if row.shield == "matched":
        verdict = "matched" if made["matched"] else "NOT matched"
        text += f", ReplayRet {made['ReplayRet']:.3f} for RAPO's {made['target']:.3f}: {verdict}"
    console.print(text, highlight=False)
    console.print(f"wrote {folder / 'checkpoint.pt'}", highlight=False)


def tell(console: Console, folder: Path, summary: dict[str, Any]) -> None:
    """What a run came to, with every budget and whether it was met."""
    speed = summary["steps_per_second"]
    console.print(
        f"{folder}: {summary['steps']:,} steps"
        + (f" at {speed:,} steps/s" if speed else " (nothing left to do)")
        + f", reward {summary['reward']:.3f} a step"
        + (f", return {summary['return']:,.4g} an episode" if summary.get("return") else ""),
        highlight=False,
    )
    for name, budget in summary["budgets"].items():
        verdict = "met" if budget["met"] else "NOT met"
        cap = ", dual at its cap" if budget["dual_at_cap"] else ""
        console.print(
            f"  cost {name} {_number(budget['cost'])} of budget {budget['budget']:.3f}: {verdict} "
            f"(dual {budget['dual']:.2f}{cap})",
            highlight=False,
        )
    console.print(f"  wrote {folder / 'checkpoint.pt'}", highlight=False)


def _number(value: float | None) -> str:
    return "unknown (no episode has ended)" if value is None else f"{value:.3f}"


def run_folder(out: Path | None, config: TrainConfig, several: bool) -> Path:
    """Folder of a run: `--out` itself for one run, a folder in it for each of several."""
    name = f"g{config.graph_seed}-s{config.seed}"
    if out is None:
        graph = f"n{config.nodes}" if config.graph is None else Path(config.graph).stem
        return Path("runs") / f"{config.method}-{graph}-{name}"
    return out / name if several else out


def train_all(
    configs: Sequence[AnyConfig],
    folders: Sequence[Path],
    *,
    jobs: int,
    resume: bool = False,
    track: Sequence[str] = (),
    threshold: float | None = None,
    show: bool = True,
) -> list[dict[str, Any]]:
    """Train every config in its folder, `jobs` at a time in processes of their own; summaries."""
    whole_number("jobs", jobs, 1)
    with _display(show) as progress:
        bars = [_Bar(progress, config, len(configs) > 1) for config in configs]
        options: dict[str, Any] = {
            "resume": resume,
            "track": track,
            "threshold": threshold,
        }
        if len(configs) == 1:
            return [train(configs[0], folders[0], report=bars[0], **options)]
        return _side_by_side(configs, folders, bars, jobs, options)


def _side_by_side(
    configs: Sequence[AnyConfig],
    folders: Sequence[Path],
    bars: Sequence[Callable[[int, Numbers], None]],
    jobs: int,
    options: dict[str, Any],
) -> list[dict[str, Any]]:
    with channel() as news, pool(min(jobs, len(configs))) as workers:
        calls = {
            i: (_one, i, config, folder, news, options)
            for i, (config, folder) in enumerate(zip(configs, folders, strict=True))
        }

        def show() -> None:
            while not news.empty():
                i, steps, numbers = news.get()
                bars[i](steps, numbers)

        summaries = dict(as_they_end(workers, calls, between=show))
    return [summaries[i] for i in range(len(configs))]


def _one(
    i: int, config: AnyConfig, folder: Path, news: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """One run in a process of its own; tells its progress through `news`."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", IdleWarning)  # the parent has told
    return train(config, folder, report=lambda s, numbers: news.put((i, s, numbers)), **options)


def _display(show: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}"),
        disable=not show,
        transient=True,
    )


class _Bar:
    """A line of the display: steps per second, reward, costs over budget, duals."""

    def __init__(self, progress: Progress, config: AnyConfig, several: bool) -> None:
        graph = f" g{config.graph_seed}" if isinstance(config, TrainConfig) else ""
        name = config.method + (f"{graph} s{config.seed}" if several else "")
        self.progress = progress
        total = config.updates * config.ppo.rollout
        self.task: TaskID = progress.add_task(name, total=total, now="")
        self.smooth: Numbers = {}

    def __call__(self, steps: int, numbers: Numbers) -> None:
        for key, value in numbers.items():  # means of about ten rollouts: single ones are noisy
            if isfinite(value):
                self.smooth[key] = 0.9 * self.smooth.get(key, value) + 0.1 * value
        speed = self.progress.tasks[self.task].speed
        figure = "return" if "return" in self.smooth else "reward"
        words = [f"{speed:,.0f} steps/s" if speed else "", f"{figure} {self.smooth[figure]:.3f}"]
        for key, value in self.smooth.items():
            if key.startswith("cost_"):
                dual = numbers["dual_" + key.removeprefix("cost_")]
                words.append(f"{key.removeprefix('cost_')} {value:.2f} (dual {dual:.2f})")
        self.progress.update(self.task, completed=steps, now="  ".join(filter(None, words)))
