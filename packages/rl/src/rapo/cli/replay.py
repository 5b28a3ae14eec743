"""`rapo rsd` and `rapo report`: the diagnostic, and a page of its results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


Policy = Annotated[
    str,
    typer.Argument(
        help="The folder of a run, aggressive, moderate, conservative, the number of an action, "
        "scripted, a .zip of Stable-Baselines3 (PPO, A2C, DQN, ...), or package.module:name of a "
        "policy of your own."
    ),
]
AsMethod = Annotated[
    str | None, typer.Option(help="Runs: as what to evaluate it, such as off@rep or Shield.")
]
Threshold = Annotated[float | None, typer.Option(help="Runs: of a Shield.")]
Env = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        help="Instead of a graph: a Gymnasium id (rapo/Routing-v0, package:ID, ...), or "
        "package.module:name of what makes an environment of the ReplayEnv protocol.",
    ),
]
EnvKwargs = Annotated[
    str | None, typer.Option(help="Keyword arguments of the environment, as JSON.")
]
Nodes = Annotated[int | None, typer.Option(help="Size of the graph, default 250.")]
GraphSeed = Annotated[int | None, typer.Option(help="Seed of the graph, default 0.")]
Deformation = Annotated[
    str | None, typer.Option(help="full (default), off, topk:<k> or local[:<share>].")
]
Observe = Annotated[str | None, typer.Option(help="x (default), or xGH to show the fields.")]
Coupled = Annotated[bool, typer.Option("--coupled", help="Replay reuses the draws of Exposure.")]
OffAtReplay = Annotated[
    bool, typer.Option("--off-at-replay", help="Sample Replay from P0 (off@rep).")
]
AgainstP0 = Annotated[
    bool,
    typer.Option("--against-p0", help="Also run a P0 twin: SM_vs_P0, Reach_vs_P0, ReturnKept."),
]
Selectivity = Annotated[
    bool, typer.Option("--selectivity", help="Also begin Replay under another stimulus.")
]
Horizons = Annotated[
    str | None, typer.Option(help="Steps of exposure, decay, replay, such as 500,200,500.")
]
GRAPH_OPTIONS = ("nodes", "graph_seed", "graph", "regions", "fit")
"""Keyword arguments that graphs alone take."""


@dataclass(frozen=True)
class Subject:
    """The policy and the environment that `rapo rsd` names."""

    policy: str
    env: str | None
    env_kwargs: Mapping[str, Any]
    method: str | None
    threshold: float | None


def rsd(
    policy: Policy,
    method: AsMethod = None,
    threshold: Threshold = None,
    env: Env = None,
    env_kwargs: EnvKwargs = None,
    platform_seed: PlatformSeed = None,
    nodes: Nodes = None,
    graph_seed: GraphSeed = None,
    graph: GraphFile = None,
    deformation: Deformation = None,
    regions: Regions = None,
    fit: Fit = None,
    observe: Observe = None,
    episodes: Annotated[int, typer.Option(help="RSD episodes.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the first episode.")] = 0,
    coupled: Coupled = False,
    off_at_replay: OffAtReplay = False,
    against_p0: AgainstP0 = False,
    selectivity: Selectivity = False,
    horizons: Horizons = None,
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

    from rapo.rsd.report import text_table
    from rapo.rsd.result import files_in
    from rapo_core.files import refuse_to_overwrite

    options: dict[str, Any] = {
        "episodes": episodes, "seed": seed, "coupled": coupled, "off_at_replay": off_at_replay,
        "against_P0": against_p0, "selectivity": selectivity,
        "horizons": None if horizons is None else parse_horizons(horizons), "progress": True,
    }  # fmt: skip
    if out is not None:
        refuse_to_overwrite(*files_in(out), force=force)
    made_of = {"deformation": deformation, "regions": regions, "observe": observe, "fit": fit}
    kwargs = graph_kwargs(nodes, graph_seed, graph, **made_of, seed=platform_seed)
    if env_kwargs is not None:
        from rapo.agents.run_file import parse_env_kwargs

        kwargs |= parse_env_kwargs("--env-kwargs", env_kwargs)
    result = _evaluate(Subject(policy, env, kwargs, method, threshold), options)
    console = Console()
    console.print(text_table({result.manifest.get("method", policy): result}))
    for line in _notes(result.manifest):
        console.print(line, highlight=False)
    if out is not None:
        result.save(out, force=force)
        console.print(f"wrote {out}; rapo report {out} makes a page of it", highlight=False)


def _evaluate(subject: Subject, options: Mapping[str, Any]) -> RSDResult:
    """Evaluate a run on what it was trained on, any other policy on the environment named."""
    from rapo.agents.run_config import GRAPH_ENV
    from rapo.policies import is_run
    from rapo.rsd.runner import evaluate

    policy, kwargs = subject.policy, dict(subject.env_kwargs)
    env = GRAPH_ENV if subject.env is None else subject.env
    if env == GRAPH_ENV and "seed" in kwargs:
        raise UserError(f"--platform-seed {kwargs['seed']} needs --env with a platform")
    if env != GRAPH_ENV and (idle := [name for name in GRAPH_OPTIONS if name in kwargs]):
        raise UserError(f"{', '.join(idle)} are for graphs, not for --env {env}")
    if subject.env is None and is_run(policy):
        return _evaluate_run(subject, options)
    as_what = {"--method": subject.method, "--threshold": subject.threshold}
    if used := ", ".join(name for name, value in as_what.items() if value is not None):
        raise UserError(f"{used} is for runs on what they were trained on, got {policy!r}")
    if is_run(policy):
        kwargs = {**_shown_to(policy, env), **kwargs}
    made = make_environment(env, kwargs)
    return evaluate(made, _policy_of(policy, made), **options)


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


def _evaluate_run(subject: Subject, options: Mapping[str, Any]) -> RSDResult:
    """Evaluate a run on what it was trained on; options of a graph have to be those of its own."""
    from rapo.paper.evaluation import evaluate_run

    kwargs = subject.env_kwargs
    expected = {n: v for n, v in kwargs.items() if n in ("nodes", "graph_seed")}
    graph = kwargs.get("graph")
    if others := {n: v for n, v in kwargs.items() if n != "graph" and n not in expected}:
        raise UserError(
            f"a run brings its own {', '.join(others)}, got {others}; see --method for "
            "what else it can be evaluated as"
        )
    return evaluate_run(
        subject.policy, method=subject.method, threshold=subject.threshold, expected=expected,
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
