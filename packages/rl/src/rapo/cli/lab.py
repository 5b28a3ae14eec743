"""`rapo lab`: a page that answers while constants are moved, or its metrics in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rapo.cli.options import Force, PlatformSeed
from rapo.platforms.registration import PLATFORMS
from rapo.show.lab.request import CONSTANTS, EPISODES, FILE, GENERATED, Episodes, SourceId, Variant
from rapo_core.checks import UserError
from rapo_core.files import refuse_to_overwrite
from rapo_core.params import FieldParams

PORT = 8899


def lab(
    nodes: Annotated[int | None, typer.Option(help="Size of a generated graph, 250.")] = None,
    graph_seed: Annotated[int, typer.Option(help="Seed of the graph.")] = 0,
    graph: Annotated[Path | None, typer.Option(help="A graph: .npz, CSV, GraphML.")] = None,
    env: Annotated[str | None, typer.Option(help=f"A platform: {', '.join(PLATFORMS)}.")] = None,
    platform_seed: PlatformSeed = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", help=f"NAME=VALUE of {', '.join(CONSTANTS)}.")
    ] = None,
    regions: Annotated[str | None, typer.Option(help="Region spec of a graph.")] = None,
    scope: Annotated[str, typer.Option(help="full, off, topk:<k> or local:<share>.")] = "full",
    policy: Annotated[
        str | None,
        typer.Option(
            help="aggressive, moderate, conservative (action <i> of a platform), the folder of "
            "a run, or a .zip of Stable-Baselines3."
        ),
    ] = None,
    episodes: Annotated[int, typer.Option(help="RSD episodes.")] = EPISODES,
    seed: Annotated[int, typer.Option(help="Seed of the first episode.")] = 0,
    stimulus: Annotated[int, typer.Option(help="1-based; 0 draws one per episode.")] = 0,
    coupled: Annotated[
        bool, typer.Option("--coupled", help="Replay reuses the draws of Exposure.")
    ] = False,
    print_metrics: Annotated[
        bool, typer.Option("--print", help="Print the metrics in place of opening the page.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="With --print: folder to save the result in.")
    ] = None,
    force: Force = False,
    port: Annotated[int, typer.Option(help="Of the page; 0 for a free one.")] = PORT,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Open a page on this machine that answers while constants are moved."""
    if platform_seed is not None and env is None:
        raise UserError(f"--platform-seed {platform_seed} is for platforms: give --env")
    source_seed = graph_seed if env is None else platform_seed or 0
    source_id = _source_id(nodes, source_seed, graph, env)
    which = {"count": episodes, "seed": seed, "stimulus": stimulus, "coupled": coupled}
    variant: dict[str, Any] = {"params": _constants(change or []), "scope": scope}
    variant |= {name: v for name, v in (("regions", regions), ("policy", policy)) if v is not None}
    if print_metrics:
        _print_metrics(source_id, variant, which, out, force=force)
        return
    if out is not None:
        raise UserError(f"--out {out} is for --print")
    Variant.parse(variant, FieldParams())  # a wrong value is refused here, not first on the page
    from rapo.show.lab.serve import serve

    serve(source_id, {"a": variant, "episodes": which}, port, open_browser=browser)


def _print_metrics(
    source_id: SourceId,
    variant: dict[str, Any],
    which: dict[str, Any],
    out: Path | None,
    *,
    force: bool,
) -> None:
    import pandas as pd
    from rich.console import Console

    from rapo.html.terminal import print_frame
    from rapo.rsd.result import files_in
    from rapo.show.lab.metrics import measure
    from rapo.show.lab.sources import find_source

    if out is not None:
        refuse_to_overwrite(*files_in(out), force=force)
    source = find_source(source_id)
    first = source.variant
    request = {"regions": first.regions, "policy": first.policy, **variant}
    metrics = measure(
        source, Variant.parse(request, first.params), Episodes.parse(which, source.stimuli)
    )
    table = pd.DataFrame(
        [
            (
                row["name"].replace("_", "-"),
                f"{row['mean']:.6g}",
                f"{row['low']:.6g} to {row['high']:.6g}",
                "ratio of means" if row["pooled"] else "",
            )
            for row in metrics.rows
        ],
        columns=["", "mean", "95% interval", " "],
    )
    console = Console()
    print_frame(console, table, f"{source.title}; {which['count']} episodes")
    console.print(metrics.point, highlight=False)
    if out is not None:
        metrics.result.save(out, force=force)
        typer.echo(f"wrote {out}")


def _source_id(nodes: int | None, seed: int, graph: Path | None, env: str | None) -> SourceId:
    options = {"--nodes": nodes, "--graph": graph, "--env": env}
    used = [f"{name} {value}" for name, value in options.items() if value is not None]
    if len(used) > 1:
        raise UserError(f"choose one of --nodes, --graph and --env, got {' and '.join(used)}")
    if graph is not None:
        return SourceId.parse({"kind": FILE, "path": str(graph)})
    if env is not None:
        return SourceId.parse({"kind": env, "seed": seed})
    return SourceId.parse(
        {"kind": GENERATED, "nodes": 250 if nodes is None else nodes, "seed": seed}
    )


def _constants(changes: list[str]) -> dict[str, float]:
    constants = {}
    for change in changes:
        name, equals, value = change.partition("=")
        try:
            if name not in CONSTANTS or not equals:
                raise ValueError
            constants[name] = float(value)
        except ValueError:
            raise UserError(
                f"--set takes NAME=NUMBER of {', '.join(CONSTANTS)}, got {change!r}"
            ) from None
    return constants
