"""`rapo reproduce networks`: run the study, write its tables and its picture."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Column, Table

from rapo.html.page import markdown
from rapo.jobs.folder import claim_folder, note_versions
from rapo.jobs.job import unfinished
from rapo.jobs.lock import locked
from rapo.jobs.run import checked_slots, run_with_bar
from rapo.jobs.tables import need_pyarrow
from rapo.paper.studies.networks import analysis
from rapo.paper.studies.networks.catalogue import NETWORKS
from rapo.paper.studies.networks.figure import label, plot_networks
from rapo.paper.studies.networks.plan import SIZES, Measure
from rapo_core.checks import UserError


def networks_from_words(
    preset: str, out: Path, *, data: Path, engine: str, jobs: int | None
) -> None:
    """`rapo reproduce networks`: see its help for the arguments."""
    console = Console()
    verdicts = run_networks(preset, out, data=data, engine=engine, jobs=jobs, console=console)
    names = [
        label(*row) for row in verdicts[["network", "V_sens", "nodes"]].itertuples(index=False)
    ]
    shown = verdicts.drop(columns=["V_sens", "nodes"]).assign(network=names).rename(columns=_short)
    table = Table(
        Column("network", no_wrap=True),
        *shown.columns[1:],
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        title="Fitted, constant aggressive action (*: calibrated by the fit)",
    )
    for row in shown.itertuples(index=False):
        table.add_row(*map(str, row))
    console.print(table)
    console.print(f"wrote {out / 'summary.md'} and {out / 'networks.png'}", highlight=False)


def _short(title: str) -> str:
    """A column's title for a terminal of 80 columns."""
    for long, short in (
        ("OddsRatio (calibrated)", "odds*"),
        ("SM_vs_P0", "SM / P0"),
        ("SM_R", "SM-R"),
        ("ReturnKept", "return"),
        ("Selectivity", "select."),
    ):
        title = title.replace(long, short)
    return title


def run_networks(
    preset: str,
    out: Path | str,
    *,
    data: Path | str,
    engine: str = "local",
    jobs: int | None = None,
    console: Console | None = None,
) -> pd.DataFrame:
    """Measure every network that is there and write the tables; the results.

    Args:
        preset: `smoke`, `quick` or `paper`.
        out: folder of the results; goes on with what it holds.
        data: folder of the real networks; those that are not there are left out, and told.
        engine: `local` or `ray`.
        jobs: networks at a time, default one per core.
        console: where to tell; default none.
    """
    need_pyarrow()
    out, data = Path(out), Path(data)
    if preset not in SIZES:
        raise UserError(f"no preset is called {preset!r}; known are {', '.join(SIZES)}")
    slots = checked_slots(engine, jobs)
    size = SIZES[preset]
    chosen = [network for network in NETWORKS if network.key in size.networks]
    absent = [network for network in chosen if network.missing(data)]
    if absent and console is not None:
        names = ", ".join(dict.fromkeys(network.name for network in absent))
        console.print(f"left out, not found in {data}: {names} (see --data)", highlight=False)
    measures = [Measure(network, size, data) for network in chosen if network not in absent]
    files = {m.network.key: m.network.contents(data) for m in measures}
    with locked(out, "rapo reproduce networks"):
        claim_folder(
            out,
            {
                "preset": preset,
                **asdict(size),
                "data": files,
            },
            preset=preset,
            steps=size.steps,
            episodes=size.episodes,
            command=f"rapo reproduce networks --preset {preset}",
            left_out=[network.key for network in absent],
        )
        if unfinished(measures, out):
            note_versions(out)
        run_with_bar(measures, out, engine=engine, slots=slots, console=console)
        table, described = (
            pd.concat([measure.read(out, name) for measure in measures], ignore_index=True)
            for name in ("results", "networks")
        )
        verdicts = analysis.verdicts(table)
        table.to_csv(out / "results.csv", index=False, float_format="%.6g")
        described.to_csv(out / "networks.csv", index=False, float_format="%.6g")
        (out / "summary.md").write_text(_summary(preset, table, described, verdicts), "utf-8")
        figure, _ = plot_networks(table)
        figure.savefig(out / "networks.png", dpi=130)
    return verdicts


def _table(frame: pd.DataFrame) -> str:
    return markdown(frame)


def _summary(
    preset: str, table: pd.DataFrame, described: pd.DataFrame, verdicts: pd.DataFrame
) -> str:
    size = SIZES[preset]
    parts = [
        "# Networks that nothing was tuned for",
        f"`rapo reproduce networks --preset {preset}`: {size.episodes} episodes; RAPO's policy is "
        f"trained for {size.steps:,} steps on each network. All else is the default. Ratios are "
        "pooled (ratio of means, 95% bootstrap over episodes). OddsRatio is calibrated where it is "
        "fitted.",
        "## Fitted, constant aggressive action",
        _table(verdicts),
        f"Selectivity in brackets: below {analysis.SELECTIVE_FROM} nodes the stimuli overlap too "
        "much to ask for it.",
        "## The networks and their fits",
        _table(described.round(3)),
        "## All rows",
        _table(analysis.printed(table)),
    ]
    return "\n\n".join(parts) + "\n"
