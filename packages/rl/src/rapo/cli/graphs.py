"""`rapo demo` and `rapo graph`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rapo.cli.options import Force, stoppable


def demo(
    nodes: Annotated[int, typer.Option(help="Size of the graph.")] = 250,
    graph_seed: Annotated[int, typer.Option(help="Seed of the graph.")] = 0,
    episodes: Annotated[int, typer.Option(help="RSD episodes per kernel.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the first episode.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for table.csv and replay.png.")] = Path("demo"),
    force: Force = False,
) -> None:
    """Show replay: exposure, washout and replay under P0, RAPO and off@rep."""
    from rapo.paper.demo import demo_from_words

    demo_from_words(nodes, graph_seed, episodes, seed, out, force=force)


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
    force: Force = False,
) -> None:
    """Turn an edge list into a graph (.npz), or show what a graph holds.

    \b
    rapo graph edges.csv --labels nodes.csv --sensitive party=R --out net.npz
    rapo graph show net.npz --out net.png
    """  # noqa: D301  # click keeps the lines after a backspace as they are
    from rapo.paper.graph_command import graph_from_words

    with stoppable("nothing was written"):
        graph_from_words(
            words, sensitive=sensitive, undirected=undirected, drop=drop, out=out, force=force,
            options={
                "labels": labels, "sensitive_part": sensitive_part, "source": source,
                "target": target, "probability": probability, "scale": scale, "stimuli": stimuli,
                "seed": seed,
            },
        )  # fmt: skip
