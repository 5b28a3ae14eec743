"""`rapo train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rapo.cli.options import Fit, GraphFile, Reading, Regions, stoppable

Method = Annotated[
    str, typer.Argument(help="GE, SS, DR, PM-ST, PM-RNN, RAPO, Shield or Shield-UM.")
]
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
GraphSeeds = Annotated[str, typer.Option(help="Seed of the graph; several as 0,2,5 or 0-9.")]
Seeds = Annotated[str, typer.Option(help="Seed of weights and episodes; several as 0,2,5 or 0-9.")]
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
    method: Method,
    env: EnvId = None,
    env_kwargs: EnvKwargs = None,
    cost: Cost = None,
    delay: Delay = None,
    nodes: Annotated[int, typer.Option(help="Size of the graph.")] = 250,
    graph_seed: GraphSeeds = "0",
    graph: GraphFile = None,
    seed: Seeds = "0",
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
        bool, typer.Option("--tensorboard", help="Write TensorBoard event files too.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time; default all cores.")] = None,
) -> None:
    """Train a method of the paper on a graph, or constrained PPO on any environment (--env).

    \b
    rapo train RAPO --nodes 250 --out runs/RAPO
    rapo train RAPO --env rapo/Routing-v0 --out runs/routing
    rapo train SS --env CartPole-v1 --cost my_costs:right_of_line --budget 25 --out runs/cartpole
    """  # noqa: D301  # click keeps the lines after a backspace as they are
    if env is not None:
        given = {
            "--nodes": nodes != 250, "--graph-seed": graph_seed != "0", "--graph": graph,
            "--regions": regions, "--fit": fit is not None, "--policy": policy, "--match": match,
            "--threshold": threshold is not None, "--reading": reading,
        }  # fmt: skip
        if idle := [name for name, used in given.items() if used]:
            raise ValueError(f"{', '.join(idle)} are for graphs, not for --env {env}")
        from rapo.experiments.train_env_command import train_env_from_words

        with stoppable("nothing was written"):
            train_env_from_words(
                method, env=env, env_kwargs=env_kwargs, cost=cost, budget=budget,
                delay=delay or 0, seeds=seed, steps=steps or "2e5", changes=change or [], out=out,
                resume=resume, tensorboard=tensorboard, jobs=jobs,
            )  # fmt: skip
        return
    for name, value in (("--env-kwargs", env_kwargs), ("--cost", cost), ("--delay", delay)):
        if value is not None:
            raise ValueError(f"{name} needs --env")
    from rapo.experiments.train_command import train_from_words

    with stoppable("nothing was written"):
        train_from_words(
            method, nodes=nodes, graph_seeds=graph_seed, graph=graph, seeds=seed,
            steps=steps or "2e6", regions=regions, wanted_fit=fit, reading=reading, budget=budget,
            changes=change or [], policy=policy, match=match, threshold=threshold, out=out,
            resume=resume, tensorboard=tensorboard, jobs=jobs,
        )  # fmt: skip
