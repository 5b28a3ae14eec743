"""`rapo train`: train a method on a graph, on a platform or on any Gymnasium environment."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rapo.cli.options import Fit, GraphFile, PlatformSeed, Reading, Regions, stoppable
from rapo.cli.parse import TrainOptions, run_configs
from rapo_core.checks import UserError, whole_number

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from rapo.agents.run_config import RunConfig

Method = Annotated[
    str | None,
    typer.Argument(help="GE, SS, DR, PM-ST, PM-RNN, RAPO, Shield or Shield-UM; or --config."),
]
RunFile = Annotated[
    Path | None,
    typer.Option(help="A run.toml: repeats that run, but for the options given beside it."),
]
Track = Annotated[
    str | None,
    typer.Option(help="Where to tell the progress too: tensorboard,wandb,mlflow."),
]
Nodes = Annotated[int | None, typer.Option(help="Size of the graph, default 250.")]
EnvId = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        help="A platform (rapo/Routing-v0, ...) instead of a graph; GE, SS, DR also any other "
        "Gymnasium environment with discrete actions. package:ID imports the package first.",
    ),
]
EnvKwargs = Annotated[
    str | None, typer.Option(help="Keyword arguments of the environment, as JSON.")
]
Cost = Annotated[
    str | None,
    typer.Option(
        help="With --env: info:KEY, or module:function of (observation acted at, action, info)."
    ),
]
Delay = Annotated[
    int | None, typer.Option(help="With --env: DR's, steps by which the cost comes late.")
]
GraphSeeds = Annotated[
    str | None, typer.Option(help="Seed of the graph, default 0; several as 0,2,5 or 0-9.")
]
Seeds = Annotated[
    str | None,
    typer.Option(help="Seed of weights and episodes, default 0; several as 0,2,5 or 0-9."),
]
Steps = Annotated[
    str | None,
    typer.Option(
        help="Environment steps, rounded up to rollouts; default 2e6 on a graph, else 2e5."
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        help="Budget of every cost over the aggressive policy's under P0 (on a platform: over "
        "its best constant action's); with --cost the mean cost of an episode."
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="NAME=VALUE of PPOConfig, setting.NAME or params.NAME."),
]
Guarded = Annotated[Path | None, typer.Option(help="Shields: the run of the GE to guard.")]
Matched = Annotated[Path | None, typer.Option(help="Shield-UM: the run of the RAPO to match.")]
RunFolder = Annotated[
    Path | None, typer.Option(help="Folder of the run; default runs/METHOD-n..-g..-s...")
]


def train(
    method: Method = None,
    config: RunFile = None,
    env: EnvId = None,
    env_kwargs: EnvKwargs = None,
    platform_seed: PlatformSeed = None,
    cost: Cost = None,
    delay: Delay = None,
    nodes: Nodes = None,
    graph_seed: GraphSeeds = None,
    graph: GraphFile = None,
    seed: Seeds = None,
    steps: Steps = None,
    regions: Regions = None,
    fit: Fit = None,
    reading: Reading = None,
    budget: Budget = None,
    change: Changes = None,
    policy: Guarded = None,
    match: Matched = None,
    threshold: Annotated[float | None, typer.Option(help="Shield: its threshold.")] = None,
    out: RunFolder = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="The same as --track tensorboard.")
    ] = False,
    track: Track = None,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time; default all cores.")] = None,
) -> None:
    """Train a method of the paper on a graph, or constrained PPO on any environment (--env).

    \b
    rapo train RAPO --nodes 250 --out runs/RAPO
    rapo train RAPO --env rapo/Routing-v0 --out runs/routing
    rapo train SS --env CartPole-v1 --cost costs:right_of_line --budget 25
    rapo train --config runs/RAPO/run.toml --seed 1 --out runs/RAPO-1
    """  # noqa: D301  # click keeps the lines after a backspace as they are
    options = TrainOptions(
        method=method, env=env, env_kwargs=env_kwargs, platform_seed=platform_seed, cost=cost,
        delay=delay, nodes=nodes, graph_seed=graph_seed, graph=graph, regions=regions, fit=fit,
        reading=reading, seed=seed, steps=steps, budget=budget, threshold=threshold,
        track=_trackers(track, tensorboard), changes=tuple(change or ()),
    )  # fmt: skip
    with stoppable("nothing was written"):
        if policy is None and match is None:
            _train_runs(options, config, out, resume, jobs)
        else:
            more = {"config": config, "resume": resume or None, "jobs": jobs}
            _guard(options, policy, match, out, more)


def _train_runs(
    options: TrainOptions, file: Path | None, out: Path | None, resume: bool, jobs: int | None
) -> None:
    """Train every run that the options name; see `train` for the arguments."""
    from rich.console import Console

    from rapo.agents.run_file import NAME, read_run

    console = Console()
    configs = run_configs(None if file is None else read_run(file), options)
    folders = [run_folder(out, each, len(configs) > 1) for each in configs]
    taken = [folder for folder in folders if (folder / NAME).exists()]
    if taken and not resume:
        raise UserError(f"{taken[0]} holds a run; go on with --resume, or choose another --out")
    configs = [_settled(each, console) for each in configs]
    first = configs[0]
    place = "" if first.on_graph else f" on {first.env}"
    console.print(
        f"{first.method}{place}: {first.updates * first.ppo.rollout:,} steps "
        f"({first.updates:,} x {first.ppo.rollout})",
        highlight=False,
    )
    if taken and not first.has_episodes:
        console.print(f"{first.env} has no snapshot: going on with new episodes")
    count = os.cpu_count() or 1 if jobs is None else jobs
    try:
        summaries = train_all(configs, folders, jobs=count, resume=resume, console=console)
    except KeyboardInterrupt:
        raise _stopped(folders, sys.argv[1:], resume) from None
    for folder, summary in zip(folders, summaries, strict=True):
        _print_summary(console, folder, summary)


def _settled(config: RunConfig, console: Console) -> RunConfig:
    """Fit what is to be fitted, once for all processes that train, and say what was fitted."""
    from rapo.agents.resolve import resolve
    from rapo.graphs.fit import Fit

    if not config.on_graph:
        return config
    settled = resolve(config).config
    if isinstance(fit := settled.env_kwargs["fit"], Fit):
        console.print(f"fit: {fit}", highlight=False)
    return settled


def _trackers(track: str | None, tensorboard: bool) -> tuple[str, ...] | None:
    """Names of trackers; None if no option names any."""
    names = [name.strip() for name in track.split(",")] if track is not None else []
    if tensorboard:
        names.append("tensorboard")
    return tuple(names) or None


def _stopped(folders: Sequence[Path], arguments: Sequence[str], resume: bool) -> KeyboardInterrupt:
    """Ctrl-C with the command that goes on."""
    arguments = [*arguments] if resume else [*arguments, "--resume"]
    names = str(folders[0]) + (f" and {len(folders) - 1} more" if len(folders) > 1 else "")
    command = shlex.join(["rapo", *arguments])
    return KeyboardInterrupt(f"to go on from what was saved last in {names}: {command}")


def run_folder(out: Path | None, config: RunConfig, several: bool) -> Path:
    """Folder of a run: `--out` itself for one run, a folder in it for each of several."""
    name = f"s{config.seed}"
    kwargs = config.env_kwargs
    place = config.env.rpartition(":")[2].replace("/", "-")
    if config.on_graph and kwargs.get("graph") is not None:
        place = Path(kwargs["graph"]).stem
    elif config.on_graph:
        place, name = f"n{config.nodes}", f"g{config.graph_seed}-{name}"
    if out is None:
        return Path("runs") / f"{config.method}-{place}-{name}"
    return out / name if several else out


def _guard(
    options: TrainOptions,
    policy: Path | None,
    match: Path | None,
    out: Path | None,
    others: Mapping[str, Any],
) -> None:
    """Put a shield around a GE that is trained already.

    Args:
        options: of which only the method and the threshold may be given.
        policy: run of GE.
        match: run of RAPO, whose return Shield-UM matches.
        out: folder of the shielded policy.
        others: further options, which are refused.
    """
    from rich.console import Console

    from rapo.agents.methods import method_named
    from rapo.paper.shields import make_shield

    console = Console()
    row = method_named(options.method or "Shield")
    if row.shield is None:
        raise UserError(f"--policy and --match are for shields, got {row.name}")
    allowed = ("method", "threshold")
    names = {"changes": "--set"}
    values = {**{k: v for k, v in vars(options).items() if k not in allowed}, **others}
    idle = [names.get(k, "--" + k.replace("_", "-")) for k, v in values.items() if v]
    if idle:
        raise UserError(f"a shield takes these from --policy: leave out {', '.join(idle)}")
    if policy is None or (match is None) != (row.shield == "fixed"):
        wanted = "--policy and --match" if row.shield == "matched" else "--policy alone"
        raise UserError(f"{row.name} takes {wanted}, got --policy {policy} and --match {match}")
    folder = Path("runs") / row.name if out is None else out
    with console.status("tuning the threshold") as status:
        made = make_shield(
            policy, folder, match=match, threshold=options.threshold,
            report=lambda t, r: status.update(f"threshold {t:.3f} keeps {r:.3f} of GE's return"),
        )  # fmt: skip
    text = f"{row.name}: threshold {made['threshold']:.4f}"
    if row.shield == "matched":
        verdict = "matched" if made["matched"] else "NOT matched"
        text += f", ReplayRet {made['ReplayRet']:.3f} for RAPO's {made['target']:.3f}: {verdict}"
    console.print(text, highlight=False)
    console.print(f"wrote {folder}", highlight=False)


def train_all(
    configs: Sequence[RunConfig],
    folders: Sequence[Path],
    *,
    jobs: int,
    resume: bool = False,
    console: Console | None = None,
) -> list[dict[str, Any]]:
    """Train every config in its folder, up to `jobs` at a time; return their summaries.

    A single run shows what it learns on the console, several show how many have ended.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from rapo.agents.train import train
    from rapo.jobs.run import as_they_end

    whole_number("jobs", jobs, 1)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}"),
        console=console,
        disable=console is None,
        transient=True,
    ) as progress:
        if len(configs) == 1:
            bar = _TrainingBar(progress, configs[0])
            return [train(configs[0], folders[0], resume=resume, report=bar)]
        task = progress.add_task("runs", total=len(configs), now="")
        calls = {
            folder: (_train, config, folder, resume)
            for config, folder in zip(configs, folders, strict=True)
        }
        summaries: dict[Path, dict[str, Any]] = {}
        for folder, summary in as_they_end(calls, jobs):
            summaries[folder] = summary
            progress.update(task, advance=1, now=f"{folder} ended")
    return [summaries[folder] for folder in folders]


def _train(config: RunConfig, folder: Path, resume: bool) -> dict[str, Any]:
    """One run in a process of its own."""
    from rapo.agents.train import train

    return train(config, folder, resume=resume)


class _TrainingBar:
    """A line of the display: steps per second, reward, costs over budget, duals."""

    def __init__(self, progress: Progress, config: RunConfig) -> None:
        self.progress = progress
        total = config.updates * config.ppo.rollout
        self.task = progress.add_task(config.method, total=total, now="")
        self.smooth: dict[str, float] = {}

    def __call__(self, steps: int, numbers: Mapping[str, float]) -> None:
        for key, value in numbers.items():  # means of about ten rollouts: single ones are noisy
            if isfinite(value):
                self.smooth[key] = 0.9 * self.smooth.get(key, value) + 0.1 * value
        speed = self.progress.tasks[self.task].speed
        figure = "return" if "return" in self.smooth else "reward"
        now = [f"{speed:,.0f} steps/s" if speed else "", f"{figure} {self.smooth[figure]:.3f}"]
        for key, value in self.smooth.items():
            if key.startswith("cost_"):
                name = key.removeprefix("cost_")
                now.append(f"{name} {value:.2f} (dual {numbers[f'dual_{name}']:.2f})")
        self.progress.update(self.task, completed=steps, now="  ".join(filter(None, now)))


def _print_summary(console: Console, folder: Path, summary: Mapping[str, Any]) -> None:
    """Print what a run came to, with every budget and whether it was met."""
    for line in _summary_lines(folder, summary):
        console.print(line, highlight=False)


def _summary_lines(folder: Path, summary: Mapping[str, Any]) -> Iterator[str]:
    speed = summary["steps_per_second"]
    yield (
        f"{folder}: {summary['steps']:,} steps"
        + (f" at {speed:,} steps/s" if speed else " (nothing left to do)")
        + f", reward {summary['reward']:.3f} a step"
        + (f", return {summary['return']:,.4g} an episode" if summary.get("return") else "")
    )
    for name, budget in summary["budgets"].items():
        cost = "unknown (no episode has ended)"
        if budget["cost"] is not None:
            cost = f"{budget['cost']:.3f}"
        verdict = "met" if budget["met"] else "NOT met"
        cap = ", dual at its cap" if budget["dual_at_cap"] else ""
        yield (
            f"  cost {name} {cost} of budget {budget['budget']:.3f}: {verdict} "
            f"(dual {budget['dual']:.2f}{cap})"
        )
    yield f"  rapo rsd {folder} runs the diagnostic on its policy"
