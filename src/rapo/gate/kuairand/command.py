"""`rapo gate demo` on real data: tune, score, print, write."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from rapo.gate import tables
from rapo.gate.kuairand.data import DELAY, FILE, FIRST_TEST_DAY, Grain, Trial, read, sparsity, split
from rapo.gate.kuairand.live import replay
from rapo.gate.kuairand.methods import METHODS, Method, Setting, weigh
from rapo.gate.kuairand.score import LEVELS, interval, lift, resampled, taken, tune

PLACES = (Path("data/kuairand_like_hate"), Path("../shared/data/kuairand_like_hate"))
"""Where the data is looked for, from the working directory."""
SHOWN_LEVEL = 0.05
"""Level whose setting of the gate is replayed through a real one."""

Values = dict[str, Any]


def find_data(given: Path | None) -> Path | None:
    """The folder of the data: the one that was given, or the first that is there, or None."""
    if given is not None:
        if not (given / FILE).exists():
            raise FileNotFoundError(f"there is no {FILE} in {given}")
        return given
    return next((place for place in PLACES if (place / FILE).exists()), None)


def run_kuairand(
    folder: Path, *, out: Path | None = None, seed: int = 0, console: Console | None = None,
    methods: tuple[Method, ...] = METHODS, most_rows: int | None = None,
) -> Values:  # fmt: skip
    """Replay likes and hates; print and return what was found.

    Args:
        folder: of the data.
        out: folder for kuairand.csv and kuairand.json; neither may exist.
        seed: of the split of people and of the bootstrap.
        console: where to print.
        methods: the gate first.
        most_rows: use only so many rows, spread over all days; for tests.
    """
    console = console or Console()
    files = _free_files(out)
    began = time.perf_counter()
    stream = read(folder)
    if most_rows is not None:
        step = max(1, len(stream) // most_rows)
        stream = stream.part(np.arange(len(stream)) % step == 0)
    tuning, test = split(stream, seed)
    with console.status("tuning"):
        rows = [r for method in methods for r in _of_method(method, tuning, test, seed)]
    _compare(rows)
    chosen = next(r for r in rows if r["level"] == SHOWN_LEVEL)["setting"]
    with console.status("replaying through a gate"):
        live = _live(chosen, methods[0], tuning, test)
    found = {
        "data": sparsity(stream),
        "tuning": _counts(tuning),
        "test": _counts(test),
        "rows": [{k: v for k, v in r.items() if not k.startswith("_")} for r in rows],
        "live": live,
        "grid": {m.name: len(m.grid) for m in methods},
        "seed": seed,
        "seconds": time.perf_counter() - began,
    }
    _print(console, found)
    for file, text in zip(files, _texts(found), strict=False):
        file.write_text(text)
        console.print(f"wrote {file}", highlight=False)
    return found


def _free_files(out: Path | None) -> list[Path]:
    if out is None:
        return []
    files = [out / "kuairand.csv", out / "kuairand.json"]
    for file in files:
        if file.exists():
            raise FileExistsError(f"{file} exists; choose another --out")
    out.mkdir(parents=True, exist_ok=True)
    return files


def _texts(found: Values) -> tuple[str, str]:
    frame = pd.DataFrame(found["rows"])
    frame["setting"] = frame["setting"].map(json.dumps)
    return frame.to_csv(index=False), json.dumps(found, indent=1)


def _of_method(method: Method, tuning: Trial, test: Trial, seed: int) -> list[Values]:
    """Tune a method, score it on the test; one entry per level."""
    entries = []
    for level, (setting, enforced) in tune(method, tuning).items():
        sums = taken(test, weigh(method, test.stream, setting, tuning.stream))
        hated, liked = sums.shares()
        draws = sums.shares(resampled(sums.hated.size, seed))
        lifts = lift(*draws)
        value = float(lift(hated, liked))
        entries.append({
            "level": level,
            "method": method.name,
            "setting": setting,
            "enforced": enforced,
            "liked_lost": float(liked) * enforced,
            "hated_taken": float(hated) * enforced,
            "lift": value if np.isfinite(value) else None,
            "lift_interval": interval(lifts),
            "hated_taken_at_level": value * level if liked >= level else None,
            "hated_taken_interval": interval(np.asarray(draws[0]) * enforced),
            "_lifts": lifts,
        })  # fmt: skip
    return entries


def _compare(rows: list[Values]) -> None:
    """Add to each rival the gate's lift minus its own, over the same draws of people."""
    gate = {r["level"]: r for r in rows if r["method"] == rows[0]["method"]}
    for row in rows:
        mine = gate[row["level"]]
        if row is not mine:
            row["gate_minus_this"] = interval(mine["_lifts"] - row["_lifts"])


def _live(setting: Setting, method: Method, tuning: Trial, test: Trial) -> Values:
    """Replay the test through a real gate; it must weigh every row as the fold alone did."""
    region = Grain(setting["grain"], tuning.stream).regions(test.stream)
    began = time.perf_counter()
    weights, verified = replay(test.stream, region, setting)
    fold = weigh(method, test.stream, setting, tuning.stream)
    return {
        "decisions": len(test.stream),
        "reports": int(test.stream.hated.sum() + test.stream.skipped.sum()),
        "seconds": time.perf_counter() - began,
        "largest_difference_to_fold": float(np.abs(weights - fold).max()),
        "verified": bool(verified["ok"]),
    }


def _counts(trial: Trial) -> Values:
    scored = trial.stream.part(trial.scored)
    return {
        "rows": len(trial.stream),
        "scored_rows": len(scored),
        "scored_people": int(np.unique(scored.user).size),
        "scored_hated": int(scored.hated.sum()),
    }


def _print(console: Console, found: Values) -> None:
    data, test = found["data"], found["test"]
    console.rule("real likes and hates (KuaiRand-27K slice, CC BY-SA 4.0)", align="left")

    def say(text: str) -> None:
        console.print(text, highlight=False)

    say(
        f"{data['rows']:,} rows, {data['people']} people, {data['videos']:,} videos. Memory per "
        f"video has little to hold on to: {data['videos_hated_by_3']} of "
        f"{data['videos_hated']:,} hated videos were hated by 3 people or more, and only "
        f"{data['hated_rows_hated_before']:.1%} of hated rows (but "
        f"{data['liked_rows_hated_before']:.1%} of liked ones) are of a video that somebody hated "
        "before. So each method may choose videos or bands of durations as regions."
    )
    say(
        f"Settings were chosen on half of the people before {FIRST_TEST_DAY}; the score is of the "
        f"other half from then on: {test['scored_rows']:,} rows of {test['scored_people']} people, "
        f"{test['scored_hated']:,} of them hated. A report counts {DELAY} hours after its row."
    )
    say(
        f"{data['hated_rows_first_seen']:.0%} of hated rows but "
        f"{data['liked_rows_first_seen']:.0%} of liked ones are the first of their video: an "
        "artefact of how the slice was made, which no method here may use."
    )
    levels = [[r for r in found["rows"] if r["level"] == level] for level in LEVELS]
    rows = [
        (f"{r['level']:.0%}" if i == 0 else "", r["method"], f"{r['liked_lost']:.1%}",
         f"{r['hated_taken']:.1%}", _lift(r), _share(r["hated_taken_at_level"]),
         _interval(r.get("gate_minus_this")))
        for entries in levels for i, r in enumerate(entries)
    ]  # fmt: skip
    one = tables.table(
        "Lift: hated exposure taken away per liked exposure lost; 1 is chance. Test part.",
        ("level", "method", ">liked lost", ">hated taken", "lift [95%]", ">hated taken at level",
         "gate's lift - this"),
        rows,
    )  # fmt: skip
    console.print(one)
    for row in (r for r in found["rows"] if r["level"] == SHOWN_LEVEL):
        say(f"  {row['method']} at {SHOWN_LEVEL:.0%}: {_words(row['setting'])}")
    say(verdict(found["rows"]))
    live = found["live"]
    say(
        f"Through a real gate: {live['decisions']:,} decisions and {live['reports']:,} reports in "
        f"{live['seconds']:.1f} s, psi differs from the fold by at most "
        f"{live['largest_difference_to_fold']:.1g}, verify "
        f"{'ok' if live['verified'] else 'NOT ok'}."
    )
    say(
        "Not an exposure log: only liked or hated rows of people who did both, so none of this "
        "says what a gate would do to a platform's traffic."
    )


def verdict(rows: list[Values]) -> str:
    """In words, who takes away more per like lost, level by level."""
    words = []
    for row in rows:
        ends = row.get("gate_minus_this")
        if row["method"] == "gate" or ends is None:
            continue
        who = "better" if ends[0] > 0 else "worse" if ends[1] < 0 else "not told apart"
        words.append((row["method"], who, f"{row['level']:.0%}"))
    told: dict[tuple[str, str], list[str]] = {}
    for method, who, level in words:
        told.setdefault((method, who), []).append(level)
    parts = [
        f"{'not told apart from' if who == 'not told apart' else who + ' than'} {method} "
        f"(at {', '.join(levels)})"
        for (method, who), levels in told.items()
    ]
    return f"The gate is {'; '.join(parts)}." if parts else "Nothing can be compared."


def _words(setting: Setting) -> str:
    return " ".join(
        f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in setting.items()
    )


def _lift(row: Values) -> str:
    if row["lift"] is None:
        return "takes nothing"
    return f"{row['lift']:.2f} {_interval(row['lift_interval'])}"


def _share(share: float | None) -> str:
    return "out of reach" if share is None else f"{share:.1%}"


def _interval(ends: list[float] | None) -> str:
    return "-" if ends is None else f"[{ends[0]:.2f}, {ends[1]:.2f}]"
