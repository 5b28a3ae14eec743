"""The cache of compiled kernels notices an edit of whatever a kernel takes in, in every package."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from repository import ROOT

PROGRAM = """
import json
import sys
import numpy as np
from numba.core.event import Listener, register

compiled = set()


class Compiled(Listener):
    def on_start(self, event):
        compiled.add(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


register("numba:compile", Compiled())


def core():
    from rapo_core.fields import conductance_into
    out = np.zeros(1)
    conductance_into(np.ones(1), np.zeros(1), 1.0, 1.0, 0.1, out)
    return out[0]


def cascade():
    from rapo.platforms.kernel import draws_into
    out = np.zeros((1, 1, 1))
    draws_into(np.ones(1, np.uint64), np.ones(1, np.int64), 0, out)
    return out[0, 0, 0]


def scars():
    from rapo.scars.mixture import query_mixture
    G, H = np.zeros((1, 1)), np.zeros((1, 1))
    point = np.full((1, 1, 1), 0.5)
    query_mixture(np.zeros((1, 1, 1)), np.zeros((1, 1)), np.ones((1, 1)), np.ones((1, 1)),
           np.ones(1, np.int64), 1.0, point, G, H)
    return G[0, 0]


def registry():
    from rapo_gate.decide import _gate_into
    psi, q = np.zeros(2), np.zeros(2)
    _gate_into(np.zeros(2, np.int64), np.zeros(2, np.int32), np.full(1, 0.5),
               np.zeros(2, np.int64), np.full(2, 0.5), 0.1, True, psi, q)
    return psi[0]


def law():
    from rapo_gate.fold.records import Records
    from rapo_gate.config import GateConfig
    from rapo_gate.fold.formula import params_of
    from rapo_gate.fold.kernels import serve
    cells = Records.empty(1, 1)
    psi = np.zeros(1)
    serve(np.zeros(1, np.int64), 5, cells, params_of(GateConfig()), psi, np.zeros(1, np.bool_))
    return psi[0]


values = {name: float(globals()[name]()) for name in sys.argv[1:]}
print(json.dumps([values, sorted(compiled)]))
"""

EDITS = {
    "core": (
        "core/src/rapo_core/lanes.py",
        "    return builder.select(args[0], *values)\n\n\ndef word",
        "    return builder.select(builder.not_(args[0]), *values)\n\n\ndef word",
    ),
    "cascade": (
        "rl/src/rapo/cascade/draws.py",
        "    return unit(word(x ^ word(x >> _S15)))",
        "    return unit(word(x ^ word(x >> _S16)))",
    ),
    "scars": (
        "rl/src/rapo/scars/dictionary.py",
        "            out[c] += gap * gap",
        "            out[c] += 2 * gap * gap",
    ),
    "registry": (
        "gate/src/rapo_gate/fold/registry.py",
        "        out[i] = _real(reals, values[_slot(keys, values, wanted[i])])",
        "        out[i] = 0.25 + _real(reals, values[_slot(keys, values, wanted[i])])",
    ),
    "law": (
        "gate/src/rapo_gate/fold/formula.py",
        "    return value\n\n\n@dataclass",
        "    return value + 0.25\n\n\n@dataclass",
    ),
}
"""By name in PROGRAM: a file, what stands there, and what would change the kernel's result."""


class Checkout:
    """A copy of the three packages with a kernel cache of its own."""

    def __init__(self, folder):
        self.folder = folder
        for package in ("core", "rl", "gate"):
            shutil.copytree(
                ROOT / "packages" / package / "src",
                folder / package / "src",
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        (folder / "program.py").write_text(PROGRAM)

    def edit(self, file, before, after):
        path = self.folder / file
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, after))

    def run(self, names):
        """Values of kernels by name, and the names of functions that were compiled."""
        sources = [str(self.folder / package / "src") for package in ("core", "rl", "gate")]
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": str(self.folder / "cache"),
            "PYTHONPATH": os.pathsep.join(sources),
        }
        done = subprocess.run(
            [sys.executable, str(self.folder / "program.py"), *names],
            capture_output=True, text=True, env=environment, check=True,
        )  # fmt: skip
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout whose kernels are compiled and cached."""
    copy = Checkout(tmp_path_factory.mktemp("packages"))
    _, compiled = copy.run(EDITS)
    assert compiled != []
    return copy


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_what_a_kernel_inlines_changes_its_result(checkout, name):
    before, _ = checkout.run([name])
    checkout.edit(*EDITS[name])
    after, _ = checkout.run([name])
    assert after != before


def test_an_edit_of_a_file_that_kernels_take_nothing_from_compiles_nothing(checkout):
    before = checkout.run(EDITS)[0]
    for file in ("core/src/rapo_core/version.py", "rl/src/rapo/cascade/regions.py"):
        with (checkout.folder / file).open("a") as source:
            source.write("UNUSED = 1\n")
    assert checkout.run(EDITS) == [before, []]
