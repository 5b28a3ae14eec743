"""`rapo calibrate`: search, train the best, choose, and write the choice into the package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from optuna.trial import FrozenTrial
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rapo.cascade.setting import Setting
from rapo.jobs.lock import locked
from rapo.jobs.run import OnProgress, checked_slots
from rapo.paper.calibration.search import LOG, STAGES, Stage, log_frame, search
from rapo.paper.calibration.space import SETTING_FILE, setting_of, setting_text
from rapo.paper.calibration.targets import TARGETS, held, unmet
from rapo.paper.calibration.trained import LEARNT, learnt_share, train_best
from rapo_core.checks import UserError, whole_number
from rapo_core.files import written_whole

FINALISTS = 10
"""Settings that are tried with a trained policy."""
STEPS = 2_000_000
"""Training steps of each."""


def calibrate(
    out: Path,
    *,
    settings: int = STAGES[0].settings,
    finalists: int = FINALISTS,
    steps: int = STEPS,
    jobs: int | None = None,
    write: bool = False,
    console: Console,
) -> Setting:
    """Search the open choices of the platform on calibration graphs, and choose.

    The choice is the best-scored finalist under which a plain PPO learns enough; if it does under
    none, the best-scored one, and the console says so.

    Args:
        out: folder of the trials; a search that was cut goes on there.
        settings: how many settings the first stage measures; later stages take as many in
            proportion.
        finalists: settings that are tried with a trained policy.
        steps: training steps of each.
        jobs: processes, default one per core.
        write: whether to write the choice into the package's `setting.toml`.
        console: for progress and the table of the finalists.
    """
    if jobs is not None:
        whole_number("--jobs", jobs, 1)
    slots = checked_slots("local", jobs)
    whole_number("--settings", settings, 1)
    whole_number("--finalists", finalists, 1)
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; choose another --out")
    stages = in_proportion(settings)
    with locked(out, "rapo calibrate"), _bars(console) as progress:

        def on_stage(name: str) -> OnProgress:
            bar = progress.add_task(name)
            return lambda done, total: progress.update(bar, completed=done, total=total)

        by_law = search(out, stages, slots=slots, on_stage=on_stage)
        with written_whole(out / LOG) as part:
            log_frame(out, stages).to_parquet(part, index=False)
        best = best_of_all(by_law, finalists)
        named = {name: setting_of(law, trial.params) for name, (law, trial) in best.items()}
        rows = train_best(out, named, steps, slots=slots, on_progress=on_stage("trained policies"))
    share = learnt_share(rows)
    enough = [name for name in best if share[name] >= LEARNT]
    choice = (enough or list(best))[0]
    console.print(finalist_table(best, {str(k): float(v) for k, v in share.items()}))
    if not enough:
        console.print(f"PPO learns less than {LEARNT:.0%} of the greedy gain under every finalist")
    console.print(f"chosen: {choice}\n{setting_text(named[choice])}", highlight=False)
    if write:
        path = Path(str(SETTING_FILE))
        path.write_text(setting_text(named[choice]), encoding="utf-8")
        console.print(f"wrote {path}", highlight=False)
    return named[choice]


def in_proportion(settings: int) -> list[Stage]:
    """The stages with `settings` in the first one and as many in proportion in the others."""
    share = settings / STAGES[0].settings
    return [replace(stage, settings=max(1, round(share * stage.settings))) for stage in STAGES]


def best_of_all(
    by_law: dict[str, list[FrozenTrial]], count: int
) -> dict[str, tuple[str, FrozenTrial]]:
    """The best trials over all laws, by name, best first."""
    every = [(law, trial) for law, trials in by_law.items() for trial in trials]
    every.sort(key=lambda entry: (entry[1].value, entry[0], entry[1].number))
    return {f"{law}-{trial.number}": (law, trial) for law, trial in every[:count]}


def finalist_table(best: dict[str, tuple[str, FrozenTrial]], share: dict[str, float]) -> Table:
    """A row for each finalist: score, targets held, and what it misses."""
    table = Table("setting", "score", "held", "learnt", "RAG", "AUC_R", "SM_R", "return", "misses",
                  box=box.SIMPLE_HEAD)  # fmt: skip
    for name, (_, trial) in best.items():
        numbers = trial.user_attrs["numbers"]
        ratios = [f"{numbers[key]:.2f}" for key in ("RAG", "AUC_R", "SM_R", "ReplayRet")]
        within = f"{held(numbers)} of {len(TARGETS)}"
        misses = "; ".join(unmet(numbers)) or "nothing"
        table.add_row(name, f"{trial.value:.2f}", within, f"{share[name]:.0%}", *ratios, misses)
    return table


def _bars(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=console)
