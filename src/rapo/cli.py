"""The `rapo` command. Bad input ends with one clear line and exit code 2."""

from __future__ import annotations

import subprocess
import sys
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


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rapo {rapo.__version__}")
        raise typer.Exit


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
    try:
        sys.exit(app(standalone_mode=False))
    except UsageError as error:
        typer.echo(f"rapo: {error.format_message()} (see rapo --help)", err=True)
    except (ValueError, OSError) as error:
        typer.echo(f"rapo: {error}", err=True)
    except typer.Abort:
        typer.echo("rapo: stopped", err=True)
    sys.exit(2)
