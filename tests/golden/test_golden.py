"""Golden checks: numbers that users see, which no rebuilding of the code may change.

Each check runs the product from outside (the `rapo` command, the gate's library) and compares what
it gives with the files beside this one, digit by digit. A difference is a fault of the change,
unless the change was meant to alter that number. Then, and only then,

    python tests/golden/renew.py NAME

writes the files of the check NAME anew, and they are committed together with the change and with
the reason why the number had to move.

Training is floating-point arithmetic of torch, whose kernels depend on the processor and on the
version of torch. Two runs on one machine agree to the bit; another machine may round otherwise.
So `weights.json` holds an exact hash for each machine on which the check was renewed. On every
other machine the check compares statistics of the weights, and RSD's numbers, to `TOLERANCE`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import platform
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch

# Everything that is imported from inside the product stands here.
from rapo.agents.saved_run import load_run
from rapo.cli import main
from rapo.paper.presets import preset_named
from rapo.paper.studies.table1.analysis import section as table1_section
from rapo_core.params import FieldParams
from rapo_gate import Gate, GateConfig, HarmReport

HERE = Path(__file__).resolve().parent
RESULTS = next((p / "results" for p in HERE.parents if (p / "results").is_dir()), None)
TOLERANCE = 5e-4
"""Largest relative difference of a number of training on a machine without an exact hash."""
Files = dict[str, str]
"""Contents of the files of a check, by name."""


def rapo(*words: object) -> None:
    """Run the `rapo` command in this process; it must succeed."""
    printed = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["rapo", *map(str, words)]),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert not ended.value.code, printed.getvalue()


def csv_text(frame: pd.DataFrame, digits: int) -> str:
    """A frame as CSV, its fractions with so many significant digits."""
    return frame.to_csv(index=False, float_format=f"%.{digits}g", lineterminator="\n")


def json_text(values: Any) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


# --- the table of `rapo demo`


def demo(folder: Path) -> Files:
    """The table of README, and a small one."""
    rapo("demo", "--out", folder / "default")
    rapo("demo", "--nodes", 60, "--graph-seed", 1, "--episodes", 10, "--out", folder / "small")
    return {
        "demo.csv": (folder / "default" / "table.csv").read_text(encoding="utf-8"),
        "demo_small.csv": (folder / "small" / "table.csv").read_text(encoding="utf-8"),
    }


# --- one training, and RSD of what it learned


def policy_of(run: Path) -> Path:
    """What `rapo rsd` is given to evaluate the policy of a run."""
    return run


def weights_of(run: Path) -> dict[str, npt.NDArray[np.float32]]:
    """Arrays of a run's policy, however they are stored: `networks`, all weights of the actor and
    the critics as one vector, and `mean` and `square` of the normaliser of observations."""
    stored = load_run(run).arrays
    names = [f"{network}.{i}" for network in ("policy", "critic") for i in range(len(stored))]
    arrays = {
        "networks": np.concatenate([stored[name].ravel() for name in names if name in stored]),
        "mean": stored["normaliser.mean"],
        "square": stored["normaliser.square"],
    }
    return {name: np.asarray(values, "<f4") for name, values in arrays.items()}


def hash_of(arrays: Mapping[str, npt.NDArray[np.float32]]) -> str:
    """SHA-256 of the shapes and the little-endian float32 bytes of arrays, in order of names."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name], "<f4")
        total.update(repr(array.shape).encode() + array.tobytes())
    return total.hexdigest()


def statistics_of(arrays: Mapping[str, npt.NDArray[np.float32]]) -> pd.DataFrame:
    """Numbers that move when weights do, but hardly with the last bit of each."""
    rows = []
    for name in sorted(arrays):
        array = arrays[name].astype(float)
        position = np.linspace(0, 1, array.size)
        rows.append({
            "array": name, "size": array.size, "norm": np.linalg.norm(array),
            "absolute_mean": np.abs(array).mean(), "late_norm": np.linalg.norm(array * position),
        })  # fmt: skip
    return pd.DataFrame(rows)


def machine() -> str:
    """What the bits of a training depend on: processor, kernels that torch chose, its version."""
    info: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            info.setdefault(name.strip(), value.strip())
    names = ("model name", "cpu family", "model", "stepping")
    processor = " ".join(info.get(n, "?") for n in names) if info else platform.processor()
    kernels = torch.backends.cpu.get_cpu_capability()
    return f"{processor}, {kernels}, torch {torch.__version__}, numpy {np.__version__}"


def training(folder: Path) -> Files:
    """Four rollouts of RAPO; the hash of its weights, their statistics, RSD of three episodes."""
    run, result = folder / "run", folder / "result"
    rapo(
        "train", "RAPO", "--nodes", 50, "--graph-seed", 0, "--steps", 4096,
        "--set", "rollout=1024", "--set", "hidden=64", "--out", run,
    )  # fmt: skip
    rapo("rsd", policy_of(run), "--episodes", 3, "--out", result)
    arrays = weights_of(run)
    episodes = pd.read_csv(result / "episodes.csv")
    return {
        "weights.json": json_text({machine(): hash_of(arrays)}),
        "weights.csv": csv_text(statistics_of(arrays), 12),
        "trained_rsd.csv": csv_text(episodes, 12),
    }


# --- the fields of one gate log


def gate(folder: Path) -> Files:
    """A gate that scars, and people who confirm, override, allow and roll back."""
    start = now = 1_800_000_000.0
    rng = np.random.default_rng(5)
    config = GateConfig(
        D=2, D_max=60, base_rate=0.1, half_life=30.0, shrinkage=2.0, z=1.0, scale=1.0,
        confirm_ticks=20, params=FieldParams(tau=0.2, eta=0.05),
    )  # fmt: skip
    regions = ["cats", "diets", "loans", "rumours"]
    harmful: dict[str | int, float] = {"diets": 0.8, "rumours": 0.6, 7: 0.5}
    stages: dict[str, Any] = {}

    def note(stage: str) -> None:
        checked = made.verify()
        assert checked["ok"]
        shown = {str(name): field._asdict() for name, field in sorted(
            made.fields().items(), key=lambda item: str(item[0])
        )}  # fmt: skip
        stages[stage] = {"tick": checked["tick"], "hash": checked["fields"], "fields": shown}

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "SQLite")
        made = Gate.open(folder / "gate.db", config, clock=lambda: now)
    with made:
        for tick in range(40):
            now = start + 60.0 * tick + 5.0
            if tick == 20:
                made.set_mode("enforce", reason="all traffic", by="ana")
            for n in range(3):
                made.decide(regions, rng.dirichlet(np.ones(4)), f"request-{tick}-{n}")
            made.decide([7, 8], [0.7, 0.3], f"numbers-{tick}")
            made.flush()
            made.report([
                HarmReport(f"source {i}", f"{tick}-{name}", harm, ("user", "model")[i % 2], now,
                           regions=[name])
                for name, harm in harmful.items() for i in range(4) if rng.random() < harm
            ])  # fmt: skip
            made.tick()
        note("reports")
        now += 60.0
        made.rollback(source="source 2", reason="a campaign", by="ana")
        made.override("loans", 0.4, expires_at=now + 7200, reason="under review", by="ben")
        made.allow(7, reason="an error of the catalogue", by="ben")
        now += 600.0
        made.tick()
        note("human actions")
        made.configure({"half_life": 10.0}, reason="forget sooner", by="ana")
        now += 600.0
        made.tick()
        note("settings")
        answer = made.decide(regions, [0.25] * 4, "last")
        stages["last decision"] = {"mode": answer.mode, "q": [*answer.q], "psi": [*answer.psi]}
    return {"gate.json": json_text(stages)}


# --- one cell of the suite


def suite(folder: Path) -> Files:
    """The scorecard of the twin at its smallest size, two platforms of two episodes each."""
    rapo("suite", "run", "--domains", "twin", "--preset", "smoke", "--jobs", 1, "--out", folder)
    rows = pd.read_csv(folder / "suite.csv", dtype=str, keep_default_na=False)
    words = ["domain", "data", "policy", *(name for name in rows if name.startswith("bar_"))]
    return {"suite.csv": csv_text(rows.drop(columns=words), 6)}


# --- the committed Table 1


def table1(folder: Path) -> Files:
    """The committed episodes as the code reads them, in the digits of the committed tables."""
    assert RESULTS is not None
    committed = RESULTS / "readings" / "echo"
    episodes = pd.read_csv(committed / "episodes.csv")
    section = table1_section(preset_named("paper"), episodes, pd.DataFrame())
    ours = pd.DataFrame([(c.kind, c.verdict) for c in section.claims], columns=["kind", "verdict"])
    everything = pd.read_csv(committed / "claims.csv")
    counts = {
        name: {f"{kind}: {verdict}": int(count) for (kind, verdict), count in sorted(
            claims.groupby(["kind", "verdict"]).size().items()
        )}
        for name, claims in (("table 1, judged anew", ours), ("all, as committed", everything))
    }  # fmt: skip
    return {
        "table1.csv": csv_text(section.files["table1_spread"], 6),
        "table1_pooled.csv": csv_text(section.files["table1_pooled"], 6),
        "table1_tests.csv": csv_text(section.files["table1_tests"], 6),
        "claims.json": json_text(counts),
    }


CHECKS: dict[str, Callable[[Path], Files]] = {
    "demo": demo, "training": training, "gate": gate, "suite": suite, "table1": table1,
}  # fmt: skip
"""What computes the files of each check in an empty folder."""


@pytest.mark.parametrize("name", ["demo", "gate", "suite"])
def test_numbers_are_those_of_the_files(name: str, tmp_path: Path) -> None:
    same(CHECKS[name](tmp_path))


@pytest.mark.skipif(RESULTS is None, reason="a source without results")
def test_the_committed_table_1(tmp_path: Path) -> None:
    same(table1(tmp_path))


def test_training(tmp_path: Path) -> None:
    files = training(tmp_path)
    known = json.loads((HERE / "weights.json").read_text(encoding="utf-8"))
    if machine() in known:
        assert json.loads(files.pop("weights.json"))[machine()] == known[machine()]
        same(files)
    for name in ("weights.csv", "trained_rsd.csv"):
        computed = pd.read_csv(io.StringIO(files[name]))
        pd.testing.assert_frame_equal(computed, pd.read_csv(HERE / name), rtol=TOLERANCE, atol=1e-9)


def same(files: Files) -> None:
    for name, text in files.items():
        assert text == (HERE / name).read_text(encoding="utf-8"), name
