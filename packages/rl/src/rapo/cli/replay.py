"""`rapo rsd` and `rapo report`: the diagnostic, and a page of its results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rapo.cascade.setting import ACTIONS
from rapo.cli.options import (
    Fit,
    Force,
    GraphFile,
    PlatformSeed,
    Regions,
    graph_kwargs,
    make_environment,
)
from rapo.cli.parse import parse_horizons
from rapo_core.checks import UserError

if TYPE_CHECKING:
    from rapo.rsd.result import RSDResult


def rsd(
    policy: Annotated[
        str,
        typer.Argument(
            help="The folder of a run, aggressive, moderate, conservative, scripted, a .zip of "
            "Stable-Baselines3 (PPO, A2C, DQN, ...), or package.module:name of a policy of your "
            "own."
        ),
    ],
    method: Annotated[
        str | None,
        typer.Option(help="Runs: as what to evaluate it, such as off@rep or Shield."),
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Runs: of a Shield.")] = None,
    env: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Instead of a graph: a Gymnasium id (rapo/Routing-v0, package:ID, ...), or "
            "package.module:name of what makes an environment of the ReplayEnv protocol.",
        ),
    ] = None,
    env_kwargs: Annotated[
        str | None, typer.Option(help="Keyword arguments of the environment, as JSON.")
    ] = None,
    platform_seed: PlatformSeed = None,
    nodes: Annotated[int | None, typer.Option(help="Size of the graph, default 250.")] = None,
    graph_seed: Annotated[int | None, typer.Option(help="Seed of the graph, default 0.")] = None,
    graph: GraphFile = None,
    deformation: Annotated[
        str | None, typer.Option(help="full (default), off, topk:<k> or local[:<share>].")
    ] = None,
    regions: Regions = None,
    fit: Fit = None,
    observe: Annotated[
        str | None, typer.Option(help="x (default), or xGH to show the fields.")
    ] = None,
    episodes: Annotated[int, typer.Option(help="RSD episodes.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the first episode.")] = 0,
    coupled: Annotated[
        bool, typer.Option("--coupled", help="Replay reuses the draws of Exposure.")
    ] = False,
    off_at_replay: Annotated[
        bool, typer.Option("--off-at-replay", help="Sample Replay from P0 (off@rep).")
    ] = False,
    against_p0: Annotated[
        bool,
        typer.Option("--against-p0", help="Also run a P0 twin: SM_vs_P0, Reach_vs_P0, ReturnKept."),
    ] = False,
    selectivity: Annotated[
        bool, typer.Option("--selectivity", help="Also begin Replay under another stimulus.")
    ] = False,
    horizons: Annotated[
        str | None, typer.Option(help="Steps of exposure, decay, replay, such as 500,200,500.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to save the result in.")] = None,
    force: Force = False,
) -> None:
    """Does a policy replay? Run the diagnostic on a graph, a platform or your own environment.

    \b
    rapo rsd aggressive --nodes 100 --deformation off
    rapo rsd aggressive --graph net.npz --against-p0
    rapo rsd runs/RAPO --out results/RAPO
    rapo rsd 1 --env rapo/Routing-v0
    """  # noqa: D301  # click keeps the lines after a backspace as they are
    from rich.console import Console

    from rapo.agents.run_config import GRAPH_ENV
    from rapo.policies import is_run
    from rapo.rsd.report import text_table
    from rapo.rsd.result import files_in
    from rapo.rsd.runner import evaluate
    from rapo_core.files import refuse_to_overwrite

    options: dict[str, Any] = {
        "episodes": episodes, "seed": seed, "coupled": coupled, "off_at_replay": off_at_replay,
        "against_P0": against_p0, "selectivity": selectivity,
        "horizons": None if horizons is None else parse_horizons(horizons), "progress": True,
    }  # fmt: skip
    if out is not None:
        refuse_to_overwrite(*files_in(out), force=force)
    made_of = {"deformation": deformation, "regions": regions, "observe": observe, "fit": fit}
    kwargs = graph_kwargs(nodes, graph_seed, graph, **made_of)
    if platform_seed is not None:
        if env in (None, GRAPH_ENV):
            raise UserError(f"--platform-seed {platform_seed} needs --env with a platform")
        kwargs["seed"] = platform_seed
    if env_kwargs is not None:
        from rapo.agents.run_file import parse_env_kwargs

        kwargs |= parse_env_kwargs("--env-kwargs", env_kwargs)
    on_graph = env in (None, GRAPH_ENV)
    if not on_graph and (idle := {"nodes", "graph_seed", "graph", "regions", "fit"} & {*kwargs}):
        raise UserError(f"{', '.join(sorted(idle))} are for graphs, not for --env {env}")
    as_what = {"--method": method, "--threshold": threshold}
    if env is None and is_run(policy):
        result = _evaluate_run(policy, kwargs, method, threshold, options)
    elif used := [name for name, value in as_what.items() if value is not None]:
        raise UserError(
            f"{', '.join(used)} is for runs on what they were trained on, got {policy!r}"
        )
    else:
        if env is not None and is_run(policy):
            kwargs = {**_shown_to(policy, env), **kwargs}
        made = make_environment(GRAPH_ENV if env is None else env, kwargs)
        result = evaluate(made, _policy_of(policy, made), **options)
    console = Console()
    console.print(text_table({result.manifest.get("method", policy): result}))
    for line in _notes(result.manifest):
        console.print(line, highlight=False)
    if out is not None:
        result.save(out, force=force)
        console.print(f"wrote {out}; rapo report {out} makes a page of it", highlight=False)


def _shown_to(folder: str, env: str) -> dict[str, Any]:
    """What the policy of a run observes, where it was trained on the same platform or graph."""
    from rapo.agents.resolve import open_episodes
    from rapo.agents.saved_run import load_run

    config = load_run(folder).config
    if config.env != env or not config.has_episodes:
        return {}
    return {"observe": open_episodes(config).observe}


def _policy_of(name: str, env: Any) -> Any:
    """Find the policy of a name; numbers are actions of the environment."""
    from rapo.envs.vector import GraphDiffusionVectorEnv
    from rapo.policies import find_policy

    space = getattr(env, "single_action_space", None) or env.action_space
    names = ACTIONS if isinstance(env, GraphDiffusionVectorEnv) else ()
    return find_policy(name, actions=int(getattr(space, "n", 0)), action_names=names)


def _evaluate_run(
    folder: str,
    kwargs: Mapping[str, Any],
    method: str | None,
    threshold: float | None,
    options: Mapping[str, Any],
) -> RSDResult:
    """Evaluate a run on what it was trained on; options of a graph have to be those of its own."""
    from rapo.paper.evaluation import evaluate_run

    expected = {n: v for n, v in kwargs.items() if n in ("nodes", "graph_seed")}
    graph = kwargs.get("graph")
    if others := {n: v for n, v in kwargs.items() if n != "graph" and n not in expected}:
        raise UserError(
            f"a run brings its own {', '.join(others)}, got {others}; see --method for "
            "what else it can be evaluated as"
        )
    return evaluate_run(
        folder, method=method, threshold=threshold, expected=expected,
        graph_hash=None if graph is None else graph.hash, **options,
    )  # fmt: skip


def _notes(manifest: Mapping[str, Any]) -> list[str]:
    """What a reader of the numbers should know of the policy behind them, a line each."""
    lines = []
    shield, training = manifest.get("shield"), manifest.get("training")
    if shield is not None:
        lines.append(
            f"The shield (threshold {shield['threshold']:.4g}) simulated "
            f"{shield['transitions_per_step']:,.0f} transitions per environment step."
        )
    if training is not None and training["steps"] < training["of"]:
        lines.append(
            f"The policy's training is not finished: {training['steps']:,} of "
            f"{training['of']:,} steps."
        )
    return lines


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `rapo rsd --out` wrote.")],
    out: Annotated[Path, typer.Option(help="The HTML page to write.")] = Path("report.html"),
    mixed: Annotated[
        bool, typer.Option("--mixed", help="Allow results of different graphs on one page.")
    ] = False,
    force: Force = False,
) -> None:
    """Put saved results on one self-contained HTML page.

    \b
    rapo report results/RAPO results/GE --out compared.html
    """  # noqa: D301  # click keeps the lines after a backspace as they are
    from rapo.rsd.report import write_report
    from rapo.rsd.result import RSDResult, same_graph

    names = [run.name or str(run) for run in runs]
    if len(set(names)) < len(names):
        names = [str(run) for run in runs]
    results = {name: RSDResult.load(run) for name, run in zip(names, runs, strict=True)}
    if not mixed:
        same_graph(results)
    typer.echo(f"wrote {write_report(results, out, force=force)}")
