"""What is copied from the page finds the page's numbers, to the last digit."""

from __future__ import annotations

import ast
import json
import math
import shlex
import subprocess
import sys
from dataclasses import replace

import pytest

from rapo.rsd.result import RSDResult
from rapo.show.lab.api import Api
from rapo.show.lab.code import as_command, as_python
from rapo.show.lab.metrics import ROWS, measure, summary_of
from rapo.show.lab.request import Episodes, SourceId
from rapo.show.lab.sources import find_source


def run_python(code):
    """What the program prints, by side: metric to mean, low and high."""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    lines = (line.split(" ", 1) for line in said.stdout.splitlines())
    return {side: ast.literal_eval(text.replace("nan", "None")) for side, text in lines}


def run_command(line, folder):
    """The saved result of a command."""
    words = [*shlex.split(line)[1:], "--out", str(folder)]
    code = f"import sys; sys.argv = ['rapo', *{words!r}]; from rapo.cli import main; main()"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    return summary_of(RSDResult.load(folder))


def same(found, wanted):
    for name in ROWS:
        mean, *span = found[name]
        for one, two in zip(
            (mean, *span), (wanted[name]["mean"], *wanted[name]["ci95"]), strict=True
        ):
            if one is None or math.isnan(one):
                assert math.isnan(two)
            else:
                assert one == two, name


def sides_of(source, **changes):
    a = replace(source.variant, **changes)
    return a, a.nominal


CASES = {
    "constants": (
        SourceId(nodes=60, seed=1),
        {"regions": "node", "policy": "moderate"},
        Episodes(4, 2),
    ),
    "drawn tau, one stimulus": (
        SourceId(nodes=60, seed=1),
        {"scope": "topk:6"},
        Episodes(3, 0, 5, True),
    ),
    "a platform": (SourceId("rapo/Routing-v0", seed=3), {"policy": "action 0"}, Episodes(2)),
}


@pytest.mark.parametrize("case", CASES)
def test_python_and_command(case, tmp_path):
    source_id, changes, episodes = CASES[case]
    source = find_source(source_id)
    params = replace(source.variant.params, tau=0.123456789, w_H=3.3)
    sides = sides_of(source, params=params, **changes)
    wanted = [summary_of(measure(source, side, episodes).result) for side in sides]
    found = run_python(as_python(source, sides, episodes))
    for name, numbers in zip("AB", wanted, strict=True):
        same(found[name], numbers)
    lines = as_command(source, sides, episodes).splitlines()
    assert len(lines) == 2 and [line.count("--scope off") for line in lines] == [0, 1]
    again = run_command(lines[0], tmp_path / "a")
    for name in ROWS:  # a file keeps the digits that NumPy writes
        assert again[name]["mean"] == pytest.approx(wanted[0][name]["mean"], rel=1e-12, nan_ok=True)


def test_a_graph_of_ones_own_with_a_fit(edges, tmp_path):
    source_id = SourceId("file", path=str(edges))
    source = find_source(source_id)
    episodes = Episodes(3)
    api = Api(source_id)
    first = source.variant
    body = {"source": {"kind": "file", "path": str(edges)}, "a": first.to_dict(), "b": None,
            "episodes": {"count": 3}}  # fmt: skip
    assert json.loads(api.fit(body)[0]) == {"regions": first.regions, "tau": first.params.tau}
    code = json.loads(api.code(body)[0])
    wanted = summary_of(measure(source, source.variant, episodes).result)
    same(run_python(code["python"])["A"], wanted)


def test_a_checkpoint(source, checkpoint):
    sides = sides_of(source, policy=str(checkpoint))
    episodes = Episodes(2)
    wanted = summary_of(measure(source, sides[0], episodes).result)
    same(run_python(as_python(source, sides[:1], episodes))["A"], wanted)
    assert str(checkpoint) in as_command(source, sides[:1], episodes)


def test_a_model_of_stable_baselines(source, tmp_path):
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    import gymnasium

    env = gymnasium.make("rapo/GraphDiffusion-v0", nodes=60, graph_seed=1)
    model = sb3.PPO("MlpPolicy", env, n_steps=32, batch_size=32, device="cpu", seed=0)
    model.save(tmp_path / "model.zip")
    sides = sides_of(source, policy=str(tmp_path / "model.zip"))
    episodes = Episodes(2)
    wanted = summary_of(measure(source, sides[0], episodes).result)
    same(run_python(as_python(source, sides[:1], episodes))["A"], wanted)
