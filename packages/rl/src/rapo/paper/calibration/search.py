"""Settings screened with fixed and greedy policies: Sobol points, then children of the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from rapo.jobs.run import as_they_end
from rapo.paper.calibration.log import Log
from rapo.paper.calibration.space import SPACE, STARTS, from_box, setting_of, to_box
from rapo.paper.calibration.targets import score, shortfalls
from rapo.paper.screening import screen
from rapo_core.checks import UserError

Report = Callable[[str], None]
"""Called with a line about the progress of the search."""
Box = npt.NDArray[np.float64]

SCREEN_GRAPHS = tuple(range(1000, 1006))
WIDE_GRAPHS = tuple(range(1006, 1018))
"""Graphs differ, so the best settings are looked at again on other graphs, which decide."""
SIZE_GRAPHS = (1018, 1019, 1020)
OTHER_SIZES = (50, 100, 500, 1000)
SECOND_LOOKS = 12
PARENTS = 10
"""Best settings from which children are made."""


def screening(
    log: Log, points: int, rounds: int, around: int, jobs: int | None, report: Report
) -> list[dict[str, Any]]:
    """Screen settings, round by round; return all of them, best first.

    A child lies near one of the best, a step along the difference of two others away (differential
    evolution), and takes each coordinate from there or from its parent; the steps shrink with the
    parents' spread by themselves.
    """
    sobol = qmc.Sobol(len(SPACE), seed=0).random(points)
    boxes = [to_box(start) for start in STARTS] + list(sobol)
    done: list[dict[str, Any]] = []
    for number in range(rounds + 1):
        if number > 0:
            boxes = _children(done[:PARENTS], around, np.random.default_rng(number))
        points_left = {}
        for i, box in enumerate(boxes):
            point, key = from_box(box), f"{number}-{i}"
            entry = log.entries.get(key)
            if entry is not None and entry["point"] == point:
                done.append(entry)
            else:
                points_left[key] = point
        calls = {key: (screened, point, SCREEN_GRAPHS) for key, point in points_left.items()}
        for key, result in as_they_end(calls, jobs):
            done.append(log.add(key, point=points_left[key], **result))
        done.sort(key=lambda entry: (entry["score"], entry["key"]))
        report(f"round {number}: {len(done)} settings, best score {done[0]['score']:.2f}")
    return done


def _children(parents: Sequence[dict[str, Any]], count: int, rng: np.random.Generator) -> list[Box]:
    boxes = np.array([to_box(parent["point"]) for parent in parents])
    children = []
    for _ in range(count):
        a, b, c = rng.choice(len(boxes), 3, replace=len(boxes) < 3)
        moved = boxes[a] + rng.uniform(0.3, 0.9) * (boxes[b] - boxes[c])
        moved += rng.normal(scale=0.02, size=len(moved))
        moved = np.abs(moved)  # reflected at both ends
        moved = 1 - np.abs(1 - moved)
        from_moved = rng.random(len(moved)) < 0.7
        children.append(np.clip(np.where(from_moved, moved, boxes[a]), 0, 1))
    return children


def screened(
    point: dict[str, float], graphs: Sequence[int], sizes: Sequence[int] = ()
) -> dict[str, Any]:
    """Screen one point in a process of its own; other sizes tell how much greedy reduces RAG."""
    setting = setting_of(point)
    try:
        values = screen(setting, graphs)
        for nodes in sizes:
            values[f"reduction_{nodes}"] = 1 - screen(setting, SIZE_GRAPHS, nodes)["RAG"]
    except ValueError as error:  # rates that cannot be injected
        return {"setting": setting.to_dict(), "score": float("inf"), "error": str(error)}
    return {
        "setting": setting.to_dict(),
        "score": score(values),
        "short": shortfalls(values),
        "found": values,
    }


def second_look(
    log: Log, tried: Sequence[dict[str, Any]], jobs: int | None, report: Report
) -> list[dict[str, Any]]:
    """Screen the best settings again on more graphs and other sizes; return them, best first."""
    done: list[dict[str, Any]] = []
    points = {}
    for entry in tried[:SECOND_LOOKS]:
        if entry["key"] in log.entries:
            done.append(log.entries[entry["key"]])
        else:
            points[entry["key"]] = entry["point"]
    calls = {key: (screened, point, WIDE_GRAPHS, OTHER_SIZES) for key, point in points.items()}
    for key, result in as_they_end(calls, jobs):
        done.append(log.add(key, point=points[key], **result))
    done.sort(key=lambda entry: (entry["score"], entry["key"]))
    report(f"second look: best score {done[0]['score']:.2f} on {len(WIDE_GRAPHS)} graphs")
    return done


def distinct(entries: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Pick the best entries that differ by more than rounding: not two of one family."""
    best: list[dict[str, Any]] = []
    for entry in entries:
        if not np.isfinite(entry["score"]) or len(best) == count:
            break
        here = to_box(entry["point"])
        if all(np.abs(here - to_box(other["point"])).max() > 0.1 for other in best):
            best.append(entry)
    if not best:
        raise UserError("no setting could be run; search more points")
    return best
