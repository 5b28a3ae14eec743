"""`rapo graph`: a file becomes a saved graph, or is described and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import typer

from rapo.cli.options import Force, stoppable
from rapo_core.checks import UserError
from rapo_core.files import refuse_to_overwrite


def graph(
    arguments: Annotated[
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
    from rich.console import Console

    from rapo.graphs.description import describe, network_lines
    from rapo.graphs.load import read_graph

    show, path = _parse(arguments)
    _check_out(out, ".png" if show else ".npz", path, show=show, force=force)
    options: dict[str, Any] = {
        "labels": labels, "sensitive_part": sensitive_part, "source": source, "target": target,
        "probability": probability, "scale": scale, "stimuli": stimuli, "seed": seed,
        "sensitive": sensitive.split(",") if sensitive and "=" not in sensitive else sensitive,
        "directed": False if undirected else None,
        "self_loops": "drop" if drop else None, "duplicates": "drop" if drop else None,
    }  # fmt: skip
    with stoppable("nothing was written"):
        with Console(stderr=True).status(f"reading {path.name}"):
            graph = read_graph(path, **{k: v for k, v in options.items() if v is not None})
        console = Console()
        _print(console, describe(graph) if show else network_lines(graph))
        if out is None:
            return
        if show:
            from rapo.show.network_figure import network_figure

            network_figure(graph, path.name)[0].savefig(out, dpi=150)
        else:
            graph.save(out, force=force)
        more = "" if show else f"; rapo graph show {out} tells more"
        console.print(f"wrote {out}{more}", highlight=False, soft_wrap=True)


def _parse(arguments: Sequence[str]) -> tuple[bool, Path]:
    """Return whether to show the graph, and the file."""
    if list(arguments) == ["show"] and not Path("show").exists():
        raise UserError("rapo graph show needs the FILE to show, such as net.npz")
    show = arguments[0] == "show" and len(arguments) > 1
    if len(arguments) > 1 + show:
        raise UserError(f"one file at a time, got {arguments[show:]}; write rapo graph [show] FILE")
    return show, Path(arguments[show])


def _check_out(out: Path | None, suffix: str, path: Path, *, show: bool, force: bool) -> None:
    """Refuse an --out that cannot or must not be written, before anything is read."""
    if out is None:
        if show:
            return
        name = path.name.partition(".")[0] or "net"
        raise UserError(f"say where to save the graph, for instance --out {name}.npz")
    if out.suffix != suffix:
        raise UserError(f"--out must end in {suffix} here, got {out.name!r}")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {out.parent}; make it first")
    refuse_to_overwrite(out, force=force)


def _print(console: Any, lines: Sequence[tuple[str, str]]) -> None:
    margin = 2 + max(len(name) for name, _ in lines)
    for name, text in lines:
        for i, row in enumerate(wrap(text, max(console.width - margin, 30))):
            console.print(
                f"{'' if i else name:{margin}}{row}", highlight=False, markup=False, soft_wrap=True
            )
