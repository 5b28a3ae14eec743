"""`rapo train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rapo.cli.options import Fit, GraphFile, Reading, Regions, stoppable
from rapo_core.checks import UserError

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
EnvKwargs = Annotated[str | None, typer.Option(help="With --env: its keyword arguments, as JSON.")]
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
    typer.Option(help="Environment steps, rounded up to rollouts; default 2e6, with --env 2e5."),
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
Guarded = Annotated[Path | None, typer.Option(help="Shields: checkpoint of the GE to guard.")]
Matched = Annotated[Path | None, typer.Option(help="Shield-UM: checkpoint of the RAPO to match.")]
RunFolder = Annotated[
    Path | None, typer.Option(help="Folder of the run; default runs/METHOD-n..-g..-s...")
]


def train(
    method: Method = None,
    config: RunFile = None,
    env: EnvId = None,
    env_kwargs: EnvKwargs = None,
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
    from rapo.agents.run_file import read_run
    from rapo.agents.train_config import TrainConfig

    base = None if config is None else read_run(config)
    shared: dict[str, Any] = {
        "base": base, "budget": budget, "seeds": seed, "steps": steps, "changes": change or [],
        "out": out, "resume": resume, "track": _trackers(track, tensorboard), "jobs": jobs,
    }  # fmt: skip
    graphs = {
        "--nodes": nodes, "--graph-seed": graph_seed, "--graph": graph, "--regions": regions,
        "--fit": fit, "--policy": policy, "--match": match, "--threshold": threshold,
        "--reading": reading,
    }  # fmt: skip
    foreign = {"--env": env, "--env-kwargs": env_kwargs, "--cost": cost, "--delay": delay}
    on_graph = env is None if base is None else isinstance(base.config, TrainConfig)
    idle = [name for name, value in (foreign if on_graph else graphs).items() if value is not None]
    if idle and on_graph:
        place = "--env" if config is None else f"a run on an environment, which {config} is not"
        raise UserError(f"{', '.join(idle)} needs {place}")
    if idle:
        raise UserError(f"{', '.join(idle)} are for graphs, not for --env {env or config}")
    with stoppable("nothing was written"):
        if on_graph:
            from rapo.paper.train_command import train_from_words

            train_from_words(
                method, nodes=nodes, graph_seeds=graph_seed, graph=graph, regions=regions,
                wanted_fit=fit, reading=reading, policy=policy, match=match, threshold=threshold,
                **shared,
            )  # fmt: skip
        else:
            from rapo.paper.train_env_command import train_env_from_words

            train_env_from_words(
                method, env=env, env_kwargs=env_kwargs, cost=cost, delay=delay, **shared
            )


def _trackers(track: str | None, tensorboard: bool) -> list[str] | None:
    """Names of trackers; None if no option names any."""
    names = [name.strip() for name in track.split(",")] if track is not None else []
    if tensorboard:
        names.append("tensorboard")
    return names if names else None
