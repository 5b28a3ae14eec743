"""Seconds until the package is imported and the first step made, with kernels cached or not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.effort import Effort
from benchmarks.table import Row
from rapo.graphs.generate import generate

TITLE = "Start: fresh processes, best of several"

_BARE = "print('{}')"
_IMPORT = """
import json, sys, time
begun = time.perf_counter()
import rapo
print(json.dumps({"import": time.perf_counter() - begun, "torch": "torch" in sys.modules}))
"""
_FIRST_STEP = """
import json, sys, time
begun = time.perf_counter()
import numpy as np
import rapo
from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
imported = time.perf_counter()
engine = Cascade(Graph.load(sys.argv[1]), 64, backend="lanes")
engine.start(np.arange(64, dtype=np.uint64), np.ones(64, np.int32))
built = time.perf_counter()
engine.step(np.ones(64, np.int32))
stepped = time.perf_counter()
print(json.dumps({"import": imported - begun, "build": built - imported,
                  "step": stepped - built, "torch": "torch" in sys.modules}))
"""
_FIRST_CONTACT = """
import json, os

def busy():
    now = os.times()
    return now.user + now.system

import gymnasium, rapo
marks = [busy()]
env = gymnasium.make("rapo/GraphDiffusion-v0", nodes=250, graph_seed=0)
marks.append(busy())
env.reset(seed=0)
marks.append(busy())
env.step(0)
marks.append(busy())
print(json.dumps({"busy": marks}))
"""
_COLD_RUNS = 3


def child(program: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """Run a program in a fresh interpreter; what it prints, and `whole`, its elapsed seconds."""
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    whole = time.perf_counter() - begun
    if done.returncode:
        raise RuntimeError(f"a fresh interpreter could not run the package:\n{done.stderr}")
    return {**json.loads(done.stdout), "whole": whole}


def first_contact(effort: Effort) -> Row:
    """Processor seconds of the first make, reset and step where nothing has been compiled yet.

    Processor time, imports included: compiling keeps one core busy, whatever else the machine does.
    """
    runs = []
    for i in range(_COLD_RUNS):
        effort.progress(f"empty cache, run {i + 1} of {_COLD_RUNS}")
        with tempfile.TemporaryDirectory() as folder:
            runs.append(child(_FIRST_CONTACT, NUMBA_CACHE_DIR=folder))
    best = min(runs, key=lambda r: float(r["busy"][-1]))
    imported, made, reset, stepped = best["busy"]
    return Row(
        "first make, reset and step with an empty cache", stepped, "s", at_most=10.0,
        note=f"processor time; import {imported:.1f}, make {made - imported:.1f}, reset "
             f"{reset - made:.1f}, step {stepped - reset:.1f} s; elapsed {best['whole']:.1f} s",
    )  # fmt: skip


def measure(effort: Effort) -> list[Row]:
    """Import and first step, each in its own process, interleaved; then without the cache."""
    with tempfile.TemporaryDirectory() as folder:
        graph = generate(250, 0).save(Path(folder) / "graph.npz")
        programs = {"bare": (_BARE,), "import": (_IMPORT,), "step": (_FIRST_STEP, str(graph))}
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in programs}
        for i in range(1 + min(effort.rounds, 9)):
            effort.progress(f"round {i} (round 0 fills the caches)")
            for name, arguments in programs.items():
                result = child(*arguments)
                if i > 0:
                    runs[name].append(result)
    best = {name: min(results, key=lambda r: r["whole"]) for name, results in runs.items()}
    imported = min(r["import"] for r in runs["import"])
    step = best["step"]
    torch = any(r.get("torch", False) for results in runs.values() for r in results)
    return [
        Row("import rapo", imported, "s", at_most=0.5,
            note=f"process {best['import']['whole']:.2f} s, bare interpreter "
                 f"{best['bare']['whole']:.2f} s"),
        Row("torch loaded by import rapo or by a step", float(torch), at_most=0.0, note="0 is no"),
        Row("first step of a cached kernel, whole process", step["whole"], "s", at_most=1.0,
            note=f"interpreter, import {step['import']:.2f}, graph and engine {step['build']:.2f}, "
                 f"step {step['step']:.2f} s"),
        Row("first step alone", min(r["step"] for r in runs["step"]), "s",
            note="loads the kernel from numba's cache on disk"),
        first_contact(effort),
    ]  # fmt: skip
