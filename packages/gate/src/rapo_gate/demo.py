"""`rapo-gate demo`: an embedded gate on a small stream, from exposure to rollback.

Twelve creators are recommended. One of them does harm, is away for a while and comes back; another
one is slandered by a single reporter. Time is simulated; everything else is the real gate.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from rapo_gate import audit, tables
from rapo_gate.audit import Effect
from rapo_gate.config import GateConfig, SimulatedClock
from rapo_gate.gate import Gate
from rapo_gate.reports import HarmReport

HARMFUL, SLANDERED, LIAR = "miracle-diets", "local-news", "user-666"
CREATORS = (
    HARMFUL, SLANDERED, "cats", "chess", "cooking", "football", "gardening", "guitars", "history",
    "knitting", "space", "travel",
)  # fmt: skip
PHASES = {"exposure": 45, "washout": 60, "return": 45}
"""Ticks of each part of the story; the harmful creator is proposed in the first and the last."""
DECISIONS = 20
"""Decisions per tick."""
SHARE = 0.25
"""Share of the harmful creator in proposals, in the phases that propose it."""
LIES, LYING = 500, range(25, 35)
"""Reports of the liar, all on one creator, and the ticks of the return in which they come."""
START = 1_767_225_600.0
"""Midnight of 1 January 2026, UTC: the story always plays at the same time."""
CONFIG = GateConfig(D=10, D_max=600, base_rate=0.015)
"""The gate as it comes, but harm counts after 10 minutes, and the usual rate is that of this story:
two signals, each wrong about one exposure in a hundred, with harm of about 3/4."""


@dataclass
class Story:
    """What happened in the demo, tick by tick."""

    at: list[int] = field(default_factory=list)
    """Ticks since the start."""
    proposed: list[float] = field(default_factory=list)
    """Share of the harmful creator in what was proposed, per tick."""
    served: list[float] = field(default_factory=list)
    psi: list[float] = field(default_factory=list)
    slandered: list[float] = field(default_factory=list)
    """Psi of the slandered creator."""
    phase: list[str] = field(default_factory=list)
    decisions: int = 0
    reports: int = 0
    last: str = ""
    """Id of the last decision that had the harmful creator among its candidates."""


def demo(
    out: Annotated[Path | None, typer.Option(help="Folder for the figure.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the small stream.")] = 0,
) -> None:
    """A gate at work: a small stream gated, explained and attacked."""
    run_demo(out=out, seed=seed)


def run_demo(
    *, out: Path | None = None, seed: int = 0, console: Console | None = None
) -> None:  # fmt: skip
    """Play the story, print what happened, and draw it if there is a folder `out`."""
    if console is None:
        console = Console()
        console = console if console.is_terminal else Console(width=110)
    figure = None if out is None else out / "gate.png"
    if figure is not None and figure.exists():
        raise FileExistsError(f"{figure} exists; choose another --out")
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLite's version: this file lives for seconds
        clock = SimulatedClock(START)
        with Gate.open(Path(folder) / "gate.db", CONFIG, clock=clock) as gate:
            story = play(gate, clock, seed)
            tell(console, gate, story)
    console.print(f"{time.perf_counter() - began:.1f} s in all", highlight=False)
    if figure is not None:
        _draw(story, figure)
        console.print(f"wrote {figure}", highlight=False)


def play(gate: Gate, clock: SimulatedClock, seed: int) -> Story:
    """Run the stream through a new gate; `clock` must be its clock."""
    rng = np.random.default_rng(seed)
    story = Story()
    taste = rng.dirichlet(np.full(len(CREATORS) - 1, 3.0))
    waiting: dict[int, list[HarmReport]] = {}
    gate.set_mode("enforce", reason="the demo begins", by="demo")
    tick = 0
    for phase, length in PHASES.items():
        for step in range(length):
            clock.now = START + (tick + 0.5) * CONFIG.tick_seconds
            due = waiting.pop(tick, [])
            if phase == "return" and step in LYING:
                due += _lies(tick, LIES // len(LYING))
            gate.tick() if not due else gate.report(due)  # both fold the ticks that are due
            story.reports += len(due)
            _decide(gate, story, rng, taste, phase, tick, waiting)
            gate.flush()
            fields = gate.fields()
            story.psi.append(fields[HARMFUL].psi)
            story.slandered.append(fields[SLANDERED].psi)
            story.at.append(tick)
            story.phase.append(phase)
            tick += 1
    return story


def _decide(
    gate: Gate,
    story: Story,
    rng: np.random.Generator,
    taste: np.ndarray[Any, Any],
    phase: str,
    tick: int,
    waiting: dict[int, list[HarmReport]],
) -> None:
    """The decisions of one tick, what they showed, and the reports that this will lead to."""
    share = 0.0 if phase == "washout" else SHARE
    proposed, served = 0.0, 0.0
    for i in range(DECISIONS):
        p = np.concatenate(([share], (1 - share) * rng.dirichlet(50 * taste)))
        decision = gate.decide(CREATORS, p / p.sum(), f"{tick}-{i}", stimulus=phase)
        proposed, served = proposed + share, served + float(decision.q[0])
        shown = CREATORS[int(rng.choice(len(CREATORS), p=decision.q))]
        gate.expose_logged(decision.decision_id, [shown])  # without waiting: all share a commit
        story.decisions += 1
        story.last = decision.decision_id if share else story.last
        for signal, source, chance in (
            ("user-report", f"user-{rng.integers(200)}", 0.5 if shown == HARMFUL else 0.01),
            ("classifier", "classifier", 0.7 if shown == HARMFUL else 0.01),
        ):
            if rng.random() < chance:
                report = HarmReport(
                    source, f"{signal}-{tick}-{i}", float(rng.uniform(0.5, 1)), signal,
                    START + (tick + 0.5) * CONFIG.tick_seconds, decision.decision_id,
                )  # fmt: skip
                waiting.setdefault(tick + int(rng.integers(1, CONFIG.D)), []).append(report)
    story.proposed.append(proposed / DECISIONS)
    story.served.append(served / DECISIONS)


def _lies(tick: int, count: int) -> list[HarmReport]:
    at = START + (tick + 0.5) * CONFIG.tick_seconds
    return [
        HarmReport(LIAR, f"lie-{tick}-{i}", 1.0, "user-report", at, regions=[SLANDERED])
        for i in range(count)
    ]


def tell(console: Console, gate: Gate, story: Story) -> None:
    """Print what was gated and why, what the lies did not achieve, what a rollback changes."""

    def say(text: str) -> None:
        console.print(text, highlight=False)

    console.rule("a gate at work", align="left")
    say(
        f"{story.decisions:,} decisions among {len(CREATORS)} creators and {story.reports:,} "
        f"reports, {len(story.at)} minutes of simulated time. {HARMFUL} is proposed, reported, "
        "away for an hour, and proposed again as before."
    )
    console.print(_phases(story))

    explanation = gate.explain(story.last, 5)
    (harmful,) = [r for r in explanation["regions"] if r["region"] == HARMFUL]
    console.rule("why: one decision of the return", align="left")
    say(
        f"Decision {story.last} gave {HARMFUL} {harmful['after']:.1%} instead of "
        f"{harmful['before']:.1%} (psi {harmful['psi']:.2f}) because of "
        f"{harmful['reports_in_all']} reports; the weightiest:"
    )
    for one in tables.explain_tables({**explanation, "regions": [harmful]})[1:]:
        console.print(one)

    slandered = gate.read(lambda state: audit.region_view(state, SLANDERED))
    lowest = min(story.slandered)
    console.rule("what one liar did not achieve", align="left")
    say(
        f"{LIAR} sent {LIES} reports of full harm on {SLANDERED}. One reporter alone cannot carry "
        f"a region over the threshold, whatever others said of it before: its scar is "
        f"{slandered['H']:.2f}, its psi never fell below {lowest:.3f}."
    )

    console.rule("taking the liar out", align="left")
    reason = "reports made up"
    preview = gate.rollback(source=LIAR, dry_run=True)
    console.print(tables.effect_table(preview, f"a rollback of {LIAR}"))
    done = gate.rollback(source=LIAR, reason=reason, by="demo")
    say(
        f'Done for real, reason "{reason}": {done.reports} reports are out, event {done.event}; '
        f"the dry run predicted it {'exactly' if _came_true(preview, gate) else 'WRONGLY'}."
    )
    honest = gate.rollback(source="classifier", dry_run=True)
    moved = next((c for c in honest.regions if c.region == HARMFUL), None)
    if moved is not None:
        say(
            "Another dry run: without the classifier, which is the second kind of evidence, "
            f"{HARMFUL} would go from H {moved.H[0]:.2f} to {moved.H[1]:.2f}, from psi "
            f"{moved.psi[0]:.2f} to {moved.psi[1]:.2f}."
        )

    checked = gate.verify()
    console.rule("verify", align="left")
    say(
        f"{checked['position']:,} events folded afresh: fields {checked['replay'][:16]}…, live "
        f"{checked['fields'][:16]}…: {'the same' if checked['ok'] else 'NOT the same'}; database "
        f"{checked['integrity']}."
    )


def _phases(story: Story) -> Any:
    rows = []
    phases = np.array(story.phase)
    for phase in PHASES:
        here = phases == phase
        proposed, served = (np.array(x)[here] for x in (story.proposed, story.served))
        rows.append((
            phase, f"{proposed.mean():.1%}", f"{served.mean():.1%}",
            f"{np.array(story.psi)[here][0]:.2f} -> {np.array(story.psi)[here][-1]:.2f}",
        ))  # fmt: skip
    return tables.table(
        f"share of {HARMFUL}", ("phase", ">proposed", ">served", "psi, first to last tick"), rows
    )


def _came_true(preview: Effect, gate: Gate) -> bool:
    """Whether the fields now are those that a dry run predicted."""
    fields = gate.fields()
    return all(fields[c.region] == (c.G[1], c.H[1], c.psi[1]) for c in preview.regions)


def _draw(story: Story, file: Path) -> None:
    """Shares and psi over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(story.at, story.proposed, color="0.6", label=f"{HARMFUL}: proposed share")
    axes.plot(story.at, story.served, color="C3", label=f"{HARMFUL}: served share")
    axes.plot(story.at, story.psi, color="C0", label=f"{HARMFUL}: psi")
    axes.plot(story.at, story.slandered, color="C0", ls=":", label=f"{SLANDERED}: psi")
    edge = 0
    for phase, length in PHASES.items():
        axes.text(edge + length / 2, 1.04, phase, ha="center")
        axes.axvline(edge, color="0.85", lw=1)
        edge += length
    axes.set(xlabel="minutes", ylabel="share, psi", ylim=(0, 1.1))
    axes.legend(loc="center", frameon=False, fontsize="small")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
