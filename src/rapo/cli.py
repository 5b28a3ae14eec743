"""The `rapo` command. Bad input ends with one clear line and exit code 2."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

import rapo

UsageError: Any = typer.BadParameter.__base__
"""Typer's error for wrong words on the command line, whichever click it is built on."""

app = typer.Typer(
    help="Regret-Aware Policy Optimization and the Replay Suppression Diagnostic.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_REGIONS = (
    "node, community:<mean size>, pieces:<mean size> (of V_sens), grid:<k> or label:<column>."
)
_FIT = "Fit regions and tau to the graph; default: if it is not a generated one."
_READING = "How the paper's platform is read: echo (default), compact or bistable."
_GRAPH = "A graph (.npz, CSV, GraphML) instead of a generated one; rapo graph makes .npz files."


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rapo {rapo.__version__}")
        raise typer.Exit


@contextmanager
def _stoppable(remedy: str) -> Iterator[None]:
    """Ctrl-C ends with one line that says how to go on: what was raised with it, or `remedy`."""
    try:
        yield
    except KeyboardInterrupt as error:
        typer.echo(f"rapo: stopped; {str(error) or remedy}", err=True)
        raise typer.Exit(130) from None


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def demo(
    nodes: Annotated[int, typer.Option(help="Size of the graph.")] = 250,
    graph_seed: Annotated[int, typer.Option(help="Seed of the graph.")] = 0,
    episodes: Annotated[int, typer.Option(help="RSD episodes per kernel.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the first episode.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for table.csv and replay.png.")] = Path("demo"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier demo.")] = False,
) -> None:
    """Show replay: exposure, washout and replay under P0, RAPO and off@rep."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from rapo.experiments.demo import run_demo

    frame, files = run_demo(nodes, graph_seed, episodes, seed, out, force=force)
    table = Table(
        title=f"Scripted policy, {nodes} nodes, {episodes} episodes (mean ± std)",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    metrics = [c for c in frame.columns if f"{c}_std" in frame.columns]
    table.add_column("kernel", style="bold")
    for metric in metrics:
        table.add_column(metric.replace("_", "-"), justify="right")
    for row in frame.to_dict("records"):
        cells = [f"{row[m]:.2f} ± {row[f'{m}_std']:.2f}" for m in metrics]
        table.add_row(str(row["kernel"]), *cells)
    console = Console()
    console.print(table)
    console.print(
        "RAG, AUC-R, SM-R: peak reach, total reach and sensitive mass in Replay over Exposure. "
        "Under the stationary kernel the cascade returns in full; the scars of RAPO keep it down; "
        "switching the deformation off in Replay brings it back (its ratios exceed 1 because its "
        "Exposure was already deformed)."
    )
    for file in files:
        console.print(f"wrote {file}", highlight=False)


@app.command()
def graph(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="CSV or TSV edge list with a header, GraphML (both may be .gz) or saved graph "
            "(.npz). After the word show it is described, and drawn if --out names a .png.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The .npz to save; with show, the .png to draw.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="CSV or TSV of node labels, node ids in column 1.")
    ] = None,
    sensitive: Annotated[
        str | None,
        typer.Option(help="V_sens as column=value or ids with commas; default a random ball."),
    ] = None,
    sensitive_part: Annotated[
        str | None, typer.Option(help="all (default), or largest: its largest connected part.")
    ] = None,
    source: Annotated[str | None, typer.Option(help="Column of sources, default src.")] = None,
    target: Annotated[str | None, typer.Option(help="Column of targets, default dst.")] = None,
    probability: Annotated[
        str | None, typer.Option(help="Column of probabilities; default drawn and scaled.")
    ] = None,
    undirected: Annotated[
        bool, typer.Option("--undirected", help="Every row stands for both directions.")
    ] = False,
    drop: Annotated[
        bool, typer.Option("--drop", help="Leave out self-loops and repeated edges.")
    ] = False,
    scale: Annotated[
        bool | None,
        typer.Option(
            "--scale/--no-scale",
            help="Scale to the usual cascade size; default unless --probability is given.",
        ),
    ] = None,
    stimuli: Annotated[int | None, typer.Option(help="Number of stimuli, default 20.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all that is drawn, default 0.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what --out names.")] = False,
) -> None:
    """Turn an edge list into a graph (.npz), or show what a graph holds.

    \b
    rapo graph edges.csv --labels nodes.csv --sensitive party=R --out net.npz
    rapo graph show net.npz --out net.png
    """  # noqa: D301  # click keeps the lines after a backspace as they are
    from rapo.experiments.graph_command import graph_from_words

    with _stoppable("nothing was written"):
        graph_from_words(
            words, sensitive=sensitive, undirected=undirected, drop=drop, out=out, force=force,
            options={
                "labels": labels, "sensitive_part": sensitive_part, "source": source,
                "target": target, "probability": probability, "scale": scale, "stimuli": stimuli,
                "seed": seed,
            },
        )  # fmt: skip


@app.command()
def train(
    method: Annotated[
        str, typer.Argument(help="GE, SS, DR, PM-ST, PM-RNN, RAPO, Shield or Shield-UM.")
    ],
    env: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="A platform (rapo/Routing-v0, ...) instead of a graph; GE, SS, DR also any other "
            "Gymnasium environment with discrete actions. package:ID imports the package first.",
        ),
    ] = None,
    env_kwargs: Annotated[
        str | None, typer.Option(help="With --env: its keyword arguments, as JSON.")
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            help="With --env: info:KEY, or module:function of (observation acted at, action, info)."
        ),
    ] = None,
    delay: Annotated[
        int | None, typer.Option(help="With --env: DR's, steps by which the cost comes late.")
    ] = None,
    nodes: Annotated[int, typer.Option(help="Size of the graph.")] = 250,
    graph_seed: Annotated[
        str, typer.Option(help="Seed of the graph; several as 0,2,5 or 0-9.")
    ] = "0",
    graph: Annotated[Path | None, typer.Option(help=_GRAPH)] = None,
    seed: Annotated[
        str, typer.Option(help="Seed of weights and episodes; several as 0,2,5 or 0-9.")
    ] = "0",
    steps: Annotated[
        str | None,
        typer.Option(
            help="Environment steps, rounded up to rollouts; default 2e6, with --env 2e5."
        ),
    ] = None,
    regions: Annotated[str | None, typer.Option(help=_REGIONS)] = None,
    fit: Annotated[bool | None, typer.Option("--fit/--no-fit", help=_FIT)] = None,
    reading: Annotated[str | None, typer.Option(help=_READING)] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            help="Budget of every cost over the aggressive policy's under P0 (on a platform: over "
            "its best constant action's); with --cost the mean cost of an episode."
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE of PPOConfig, setting.NAME or params.NAME."),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="Shields: checkpoint of the GE to guard.")
    ] = None,
    match: Annotated[
        Path | None, typer.Option(help="Shield-UM: checkpoint of the RAPO to match.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Shield: its threshold.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; default runs/METHOD-n..-g..-s...")
    ] = None,
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

        with _stoppable("nothing was written"):
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

    with _stoppable("nothing was written"):
        train_from_words(
            method, nodes=nodes, graph_seeds=graph_seed, graph=graph, seeds=seed,
            steps=steps or "2e6", regions=regions, wanted_fit=fit, reading=reading, budget=budget,
            changes=change or [], policy=policy, match=match, threshold=threshold, out=out,
            resume=resume, tensorboard=tensorboard, jobs=jobs,
        )  # fmt: skip


@app.command()
def rsd(
    policy: Annotated[
        str,
        typer.Argument(
            help="RUN/checkpoint.pt, aggressive, moderate, conservative, scripted, a .zip of "
            "Stable-Baselines3 (PPO, A2C, DQN, ...), or package.module:name of a policy of your "
            "own."
        ),
    ],
    method: Annotated[
        str | None,
        typer.Option(help="Checkpoints: as what to evaluate it, such as off@rep or Shield."),
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Checkpoints: of a Shield.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Size of the graph, default 250.")] = None,
    graph_seed: Annotated[int | None, typer.Option(help="Seed of the graph, default 0.")] = None,
    graph: Annotated[Path | None, typer.Option(help=_GRAPH)] = None,
    deformation: Annotated[
        str | None, typer.Option(help="full (default), off, topk:<k> or local[:<share>].")
    ] = None,
    regions: Annotated[str | None, typer.Option(help=_REGIONS)] = None,
    fit: Annotated[bool | None, typer.Option("--fit/--no-fit", help=_FIT)] = None,
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
    force: Annotated[bool, typer.Option("--force", help="Overwrite earlier results.")] = False,
) -> None:
    """Does a policy replay? Run the diagnostic on a graph environment."""
    from rich.console import Console

    from rapo.experiments.rsd_command import parse_horizons, remarks, run_rsd
    from rapo.rsd.report import text_table
    from rapo.rsd.result import refuse_to_overwrite

    options: dict[str, Any] = {
        "episodes": episodes, "seed": seed, "coupled": coupled, "off_at_replay": off_at_replay,
        "against_P0": against_p0, "selectivity": selectivity,
        "horizons": None if horizons is None else parse_horizons(horizons), "progress": True,
    }  # fmt: skip
    if out is not None:
        refuse_to_overwrite(out, force=force)
    made_of = {"deformation": deformation, "regions": regions, "observe": observe, "fit": fit}
    result = run_rsd(
        policy, nodes=nodes, graph_seed=graph_seed, graph=graph, made_of=made_of, method=method,
        threshold=threshold, options=options,
    )  # fmt: skip
    console = Console()
    console.print(text_table({result.manifest.get("method", policy): result}))
    for line in remarks(result.manifest):
        console.print(line, highlight=False)
    if out is not None:
        result.save(out, force=force)
        console.print(f"wrote {out}; rapo report {out} makes a page of it", highlight=False)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `rapo rsd --out` wrote.")],
    out: Annotated[Path, typer.Option(help="The HTML page to write.")] = Path("report.html"),
    mixed: Annotated[
        bool, typer.Option("--mixed", help="Allow results of different graphs on one page.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier page.")] = False,
) -> None:
    """Put saved results on one self-contained HTML page."""
    from rapo.rsd.report import write_report
    from rapo.rsd.result import RSDResult, same_graph

    names = [run.name or str(run) for run in runs]
    if len(set(names)) < len(names):
        names = [str(run) for run in runs]
    results = {name: RSDResult.load(run) for name, run in zip(names, runs, strict=True)}
    if not mixed:
        same_graph(results)
    typer.echo(f"wrote {write_report(results, out, force=force)}")


@app.command()
def calibrate(
    out: Annotated[Path, typer.Option(help="Folder of the search log; a cut search goes on.")] = (
        Path("results/calibration")
    ),
    points: Annotated[int, typer.Option(help="Sobol points, a power of 2.")] = 8,
    rounds: Annotated[int, typer.Option(help="Generations of children of the best.")] = 5,
    around: Annotated[int, typer.Option(help="Children of each.")] = 36,
    finalists: Annotated[int, typer.Option(help="Settings tried with trained policies.")] = 2,
    steps: Annotated[str, typer.Option(help="Training steps of each.")] = "8e5",
    jobs: Annotated[int | None, typer.Option(help="Processes; default all cores.")] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the choice into the package's setting.toml.")
    ] = False,
) -> None:
    """Choose what the paper leaves open, on calibration graphs only."""
    from rapo.experiments.calibration.command import calibrate_from_words

    with _stoppable(f"the same command goes on with what is in {out}"):
        calibrate_from_words(
            out, points=points, rounds=rounds, around=around, finalists=finalists, steps=steps,
            jobs=jobs, write=write,
        )  # fmt: skip


@app.command()
def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            help="table1, learning, literal, table-a1, sizes, tradeoff, ablations, mechanism, "
            "motivation (several with commas), all of these; seeds; figures to draw again from "
            "what is there; or networks or consistency, which stand alone."
        ),
    ] = "all",
    preset: Annotated[
        str,
        typer.Option(
            help="smoke (2 minutes), quick (15 on 2 cores) or paper (7 hours of one thread with a "
            "core to itself, about 10 side by side)."
        ),
    ] = "quick",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder; default results/PRESET, or as the study that stands alone."),
    ] = None,
    engine: Annotated[str, typer.Option(help="local processes or a ray cluster.")] = "local",
    jobs: Annotated[int | None, typer.Option(help="Tasks at a time; default all cores.")] = None,
    reading: Annotated[str | None, typer.Option(help=_READING)] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="networks: folder of the real ones (../shared/data); consistency: of screening "
            "logs (results/calibration). Left out if not there."
        ),
    ] = None,
) -> None:
    """Run the paper's experiments and put its numbers beside ours; or RAPO on real networks."""
    if reading is not None and what in ("networks", "consistency", "figures"):
        raise ValueError(f"{what} does not take --reading, got {reading}")
    folder = preset
    if what in ("networks", "consistency"):
        folder = what if preset == "paper" else f"{what}-{preset}"
    place = out or Path("results") / folder
    with _stoppable(f"the same command goes on with what is in {place}"):
        if what == "networks":
            from rapo.experiments.networks.command import networks_from_words

            real = data or Path("../shared/data")
            networks_from_words(preset, place, data=real, engine=engine, jobs=jobs)
            return
        if what == "consistency":
            from rapo.experiments.consistency.command import consistency_from_words

            logs = data or Path("results/calibration")
            consistency_from_words(preset, place, data=logs, engine=engine, jobs=jobs)
            return
        from rapo.experiments.reproduce import reproduce_from_words

        reproduce_from_words(what, preset, out, engine=engine, jobs=jobs, reading=reading)


_PASSED_ON: dict[str, Any] = {
    "allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False,
}  # fmt: skip


@app.command(add_help_option=False, context_settings=_PASSED_ON)
def suite(context: typer.Context) -> None:
    """One scorecard on every platform: rapo suite run, rapo suite report."""
    from rapo.experiments.suite.cli import app as commands

    with _stoppable("the same command goes on where it stopped"):
        raise typer.Exit(commands(context.args, prog_name="rapo suite", standalone_mode=False) or 0)


@app.command(add_help_option=False, context_settings=_PASSED_ON)
def watch(context: typer.Context) -> None:
    """A film of replay under P0 and under RAPO, side by side: GIF or MP4."""
    from rapo.watch.cli import app as commands

    with _stoppable("nothing was written"):
        raise typer.Exit(commands(context.args, prog_name="rapo watch", standalone_mode=False) or 0)


@app.command(add_help_option=False, context_settings=_PASSED_ON)
def lab(context: typer.Context) -> None:
    """A page on this machine that answers while constants are moved."""
    from rapo.lab.command import app as commands

    raise typer.Exit(commands(context.args, prog_name="rapo lab", standalone_mode=False) or 0)


@app.command(add_help_option=False, context_settings=_PASSED_ON)
def gate(context: typer.Context) -> None:
    """Harm memory in front of a real platform: rapo gate --help lists its commands."""
    from rapo.gate.cli import app as commands  # loaded when asked for: `rapo --help` stays fast

    raise typer.Exit(commands(context.args, prog_name="rapo gate", standalone_mode=False) or 0)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Run the benchmarks of a source checkout (same as `make bench`)."""
    if not Path("benchmarks/__main__.py").exists():
        raise FileNotFoundError(
            "benchmarks/ is not here; run `rapo bench` from the root of a source checkout"
        )
    raise typer.Exit(subprocess.call([sys.executable, "-m", "benchmarks", *context.args]))


def main() -> None:
    """Entry point of the command."""
    warnings.formatwarning = lambda message, *_: f"rapo: {message}\n"  # a line, not a traceback
    try:
        sys.exit(app(standalone_mode=False))
    except UsageError as error:
        typer.echo(f"rapo: {error.format_message()} (see rapo --help)", err=True)
    except MemoryError:
        typer.echo("rapo: there is not enough memory for these sizes", err=True)
    except OSError as error:
        words = f"{error.filename}: {error.strerror}" if error.filename else error
        typer.echo(f"rapo: {words}", err=True)
    except ValueError as error:
        typer.echo(f"rapo: {error}", err=True)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        typer.echo("rapo: this needs torch; pip install 'rapo-rl[torch]'", err=True)
    except BrokenExecutor:
        typer.echo("rapo: one of its processes was killed, perhaps for want of memory", err=True)
    except typer.Abort:
        typer.echo("rapo: stopped", err=True)
    sys.exit(2)
