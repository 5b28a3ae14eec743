"""A platform's traffic of four hours in a few seconds: regions, reporters and harm that look real.

Loaded by path: test files cannot import each other.
"""

from __future__ import annotations

import time
import warnings
from math import floor
from pathlib import Path

import numpy as np

from rapo_core.params import FieldParams
from rapo_gate import Gate, GateConfig, HarmReport

TICKS = 240
EVIL = "<script>alert('x')</script>"
ODD = ["news/local & weather", "Überraschung 100 %", "..", EVIL, "  spaced  ", "12"]
BAD = {
    "crash diets": 0.5, "miracle cures": 0.38, "day trading": 0.3, "true crime": 0.27, EVIL: 0.5,
    "crypto tips": 0.16, "comics": 0.1,
}  # fmt: skip
"""Regions that harm, and how much: reporters agree on them."""
SPAMMED = "city council"
"""A region that does no harm; three accounts say so again and again, one of them in two ways."""
CAMPAIGN = "brigade-7"
TOPICS = {
    "health": ["crash diets", "miracle cures", "sleep", "running", "first aid", "vaccines"],
    "money": ["day trading", "budgeting", "pensions", "crypto tips", "second hand"],
    "news": ["true crime", "city council", "elections", "weather", "transport", "courts"],
    "leisure": ["gardening", "chess", "baking", "cats", "hiking", "board games", "birds"],
    "culture": ["folk music", "poetry", "film noir", "comics", "opera", "street art"],
}
GROUPS = ("north", "south", "east")


class Clock:
    """Stands still until told; from `run` on it is the real time."""

    def __init__(self, now: float) -> None:
        self.now: float | None = now

    def __call__(self) -> float:
        return time.time() if self.now is None else self.now


def config(**changes: object) -> GateConfig:
    """Short delays, so that scars grow within a few hundred ticks."""
    chosen = {
        "D": 5, "D_max": 600, "base_rate": 0.1, "half_life": 120.0, "shrinkage": 5.0, "scale": 2.5,
        "band_scar_mass": 1.5, **changes,
    }  # fmt: skip
    return GateConfig(params=FieldParams(tau=0.4, eta=0.008), **chosen)


def open_gate(path: Path, clock: Clock, **changes: object) -> Gate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Gate.open(path, config(**changes), clock=clock)


def fill(path: Path, ticks: int = TICKS) -> Gate:
    """A gate with a past that ends now; its clock then follows the real one."""
    rng = np.random.default_rng(7)
    end = floor(time.time() / 60) * 60.0
    clock = Clock(end - 60.0 * ticks)
    gate = open_gate(path, clock)
    names = [n for group in TOPICS.values() for n in group] + ODD
    weight = rng.dirichlet(np.full(len(names), 2.0))
    gate.decide(names, weight)
    gate.decide([101, 102, 103], [0.5, 0.3, 0.2])
    gate.flush()
    labels = {
        name: {"topic": topic, "group": GROUPS[i % 3]}
        for topic, group in TOPICS.items() for i, name in enumerate(group)
    }  # fmt: skip
    labels["crash diets"]["sensitive"] = "yes"
    gate.label(labels, reason="labels of the catalogue", by="admin")
    made: list[tuple[str, float, list[str]]] = []
    for tick in range(ticks):
        clock.now = end - 60.0 * (ticks - tick) + 5
        if tick == ticks // 3:
            gate.set_mode("enforce", 50, reason="half of the traffic for a start", by="admin")
        reports = []
        for n in range(4):
            chosen = rng.choice(len(names), 12, replace=False, p=weight)
            law = rng.dirichlet(np.full(12, 0.25))
            again = tick % (ticks // 2) < ticks // 6
            stimulus = "spring campaign" if again else f"story {tick // 60}"
            made_of = [names[i] for i in chosen]
            decision = gate.decide(made_of, law, f"request-{tick}-{n}", stimulus=stimulus)
            made.append((decision.decision_id, clock.now, made_of))
        reports += _honest(rng, made, tick)
        if tick == ticks // 2:  # nobody else ever says so
            reports.append(HarmReport(
                "night owl", "owl", 0.9, "user-report", clock.now - 30, None, ["street art"]
            ))  # fmt: skip
        if tick > 20 and tick % 4 == 0:
            reports += _campaign(tick, clock.now)
        gate.report(reports) if reports else gate.flush()  # each tick with its own decisions
    _leftovers(gate, made, end, rng)
    gate.override("chess", 0.8, expires_at=end + 86400, reason="asked by the club", by="ana")
    gate.allow("first aid", reason="public service", by="ana")
    clock.now = None
    gate.flush()
    return gate


def _honest(
    rng: np.random.Generator, made: list[tuple[str, float, list[str]]], tick: int
) -> list[HarmReport]:
    """Users, a classifier and partners on what really harms, and now and then on what does not."""
    found = []
    for back in range(1, 5):
        decision, at, names = made[-back]
        hit = [n for n in names if n in BAD]
        rate = 0.6 if hit else 0.03
        for source, signal in (
            ("user reports", "user-report"), ("toxicity model", "classifier"),
            ("partner helpline", "survey"), ("moderators", "moderator"),
        ):  # fmt: skip
            if rng.random() < rate * (0.9 if signal == "user-report" else 0.5):
                about = [str(rng.choice(hit))] if hit else None
                harm = BAD[about[0]] * rng.uniform(0.4, 1.6) if about else 0.2
                found.append(HarmReport(
                    source, f"{tick}-{back}-{signal}", round(float(harm), 2), signal, at,
                    None if about else decision, about,
                ))  # fmt: skip
    return found


def _campaign(tick: int, now: float) -> list[HarmReport]:
    return [
        HarmReport(source, f"c{tick}-{signal}", harm, signal, now - 30, None, [SPAMMED])
        for source, signal, harm in (
            (CAMPAIGN, "user-report", 0.9),
            (CAMPAIGN, "survey", 0.8),
            ("brigade-8", "user-report", 0.9),
            ("brigade-9", "user-report", 0.9),
        )
    ]


def _leftovers(
    gate: Gate, made: list[tuple[str, float, list[str]]], end: float, rng: np.random.Generator
) -> None:
    """Reports that wait: late ones, unknown regions, a lonely reporter."""
    gate.report([
        HarmReport("user reports", "late-1", 0.7, "user-report", made[40][1], made[40][0]),
        HarmReport("partner helpline", "late-2", 0.9, "survey", end - 6000, None, ["sleep"]),
        HarmReport("toxicity model", "unknown-1", 0.5, "classifier", end, None, ["not yet seen"]),
        HarmReport("<b>anonymous</b>", "odd", 0.4, "user-report", end - 400, None, ["opera"]),
    ])  # fmt: skip
