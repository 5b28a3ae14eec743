"""`rapo gate fit`: settings from a log in shadow mode."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rapo.gate.commands import Db, Json, opened


def fit(
    db: Db,
    plot: Annotated[Path | None, typer.Option(help="File for the figure, such as fit.png.")] = None,
    loss: Annotated[float, typer.Option(help="Most of the good exposures to lose.")] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the intervals.")] = 0,
    as_json: Json = False,
) -> None:
    """Find settings in the earlier part of a log, score them on the later part."""
    from rapo.gate import tables
    from rapo.gate.fit import DAY_SECONDS, guards_of
    from rapo.gate.fit import fit as fitted
    from rapo.gate.fit_report import lines, save
    from rapo.gate.shadow_log import ShadowLog

    if plot is not None and plot.exists():
        raise FileExistsError(f"{plot} exists; choose another --plot, or remove it")
    with opened(db, write=False) as gate:
        log, config = ShadowLog.of_gate(gate), gate.config
    found = fitted(
        log, guards_of(config), loss=loss, cap_source=config.cap_source, seed=seed
    )  # fmt: skip
    if plot is not None:
        save(found, plot)
    if as_json:
        tables.print_json(found.to_dict())
        return
    for line in lines(found, DAY_SECONDS / config.tick_seconds):
        typer.echo(line)
    if plot is not None:
        typer.echo(f"wrote {plot}")
