"""Options that several commands share: each declared once, with what it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rapo_core.checks import UserError

if TYPE_CHECKING:
    from rapo.cascade.graph import Graph

Force = Annotated[bool, typer.Option("--force", help="Overwrite what an earlier run wrote.")]
Tasks = Annotated[int | None, typer.Option(help="Tasks at a time; default all cores.")]
GraphFile = Annotated[
    Path | None,
    typer.Option(
        help="A graph (.npz, CSV, GraphML) instead of a generated one; rapo graph makes .npz files."
    ),
]
PlatformSeed = Annotated[
    int | None, typer.Option(help="With --env: seed of the platform, default 0.")
]
Regions = Annotated[
    str | None,
    typer.Option(
        help="node, community:<mean size>, pieces:<mean size> (of V_sens), grid:<k> or "
        "label:<column>."
    ),
]
Fit = Annotated[
    bool | None,
    typer.Option(
        "--fit/--no-fit",
        help="Fit regions and tau to the graph; default: if it is not a generated one.",
    ),
]
Reading = Annotated[
    str | None,
    typer.Option(help="How the paper's platform is read: echo (default), compact or bistable."),
]


@contextmanager
def stoppable(remedy: str) -> Iterator[None]:
    """Ctrl-C ends with one line that says how to go on: what was raised with it, or `remedy`."""
    try:
        yield
    except KeyboardInterrupt as error:
        typer.echo(f"rapo: stopped; {str(error) or remedy}", err=True)
        raise typer.Exit(130) from None


def read_graph_option(graph: Path) -> Graph:
    """Read the graph of `--graph`; options that mend a file are those of `rapo graph`."""
    from rapo.graphs.load import read_graph

    try:
        return read_graph(graph)
    except UserError as error:
        raise UserError(
            f"{error}; rapo graph {graph} --out net.npz takes such options, and "
            "--graph takes net.npz"
        ) from error


def graph_kwargs(
    nodes: int | None, graph_seed: int | None, graph: Path | None, **others: Any
) -> dict[str, Any]:
    """Turn the options of a graph into keyword arguments of `rapo/GraphDiffusion-v0`.

    Args:
        nodes: `--nodes`.
        graph_seed: `--graph-seed`.
        graph: `--graph`; refused beside the other two.
        others: further keyword arguments; those that are None are left out.
    """
    if graph is not None and (nodes is not None or graph_seed is not None):
        raise UserError(f"give either --graph {graph} or --nodes and --graph-seed, not both")
    network = None if graph is None else read_graph_option(graph)
    kwargs = {"nodes": nodes, "graph_seed": graph_seed, "graph": network, **others}
    return {name: value for name, value in kwargs.items() if value is not None}


def make_environment(env: str, kwargs: Mapping[str, Any]) -> Any:
    """Make the environment that `--env` names, for the diagnostic.

    Args:
        env: a Gymnasium id, `package:id` to import the package that registers the id, or
            `package.module:name` of a class or function that makes the environment.
        kwargs: its keyword arguments.

    Raises:
        UserError: there is no such environment, or it takes no such arguments.
    """
    from gymnasium.envs.registration import registry

    from rapo.agents.cost_env import make_env
    from rapo.agents.run_config import platform_maker
    from rapo.names import import_named

    try:
        if (make := platform_maker(env)) is not None:
            return make(1, **kwargs)
        module, _, name = env.rpartition(":")
        if not module or name in registry or "/" in name:
            return make_env(env, kwargs)
        maker = import_named(env, "environment")
        made = maker(**kwargs) if callable(maker) else maker
    except TypeError as error:
        raise UserError(f"cannot make the environment {env}: {error}") from error
    if not hasattr(made, "action_space"):
        raise UserError(f"{env} is not an environment, got {made!r}")
    return made
