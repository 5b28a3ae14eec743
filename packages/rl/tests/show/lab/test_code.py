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
from rapo.show.lab.api import Desk
from rapo.show.lab.code import as_command, as_python
from rapo.show.lab.numbers import ROWS, answer, numbers_of
from rapo.show.lab.request import Draws, Place
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
    return numbers_of(RSDResult.load(folder))


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
    a = replace(source.side, **changes)
    return a, a.nominal


CASES = {
    "constants": (Place(nodes=60, seed=1), {"regions": "node", "policy": "moderate"}, Draws(4, 2)),
    "drawn tau, one stimulus": (Place(nodes=60, seed=1), {"scope": "topk:6"}, Draws(3, 0, 5, True)),
    "a platform": (Place("rapo/Routing-v0", seed=3), {"policy": "action 0"}, Draws(2)),
}


@pytest.mark.parametrize("case", CASES)
def test_python_and_command(case, tmp_path):
    place, changes, draws = CASES[case]
    source = find_source(place)
    params = replace(source.side.params, tau=0.123456789, w_H=3.3)
    sides = sides_of(source, params=params, **changes)
    wanted = [numbers_of(answer(source, side, draws, lambda: None).result) for side in sides]
    found = run_python(as_python(source, sides, draws))
    for name, numbers in zip("AB", wanted, strict=True):
        same(found[name], numbers)
    lines = as_command(place, sides, draws, source.side).splitlines()
    assert len(lines) == 2 and [line.count("--scope off") for line in lines] == [0, 1]
    again = run_command(lines[0], tmp_path / "a")
    for name in ROWS:  # a file keeps the digits that NumPy writes
        assert again[name]["mean"] == pytest.approx(wanted[0][name]["mean"], rel=1e-12, nan_ok=True)


def test_a_graph_of_ones_own_with_a_fit(edges, tmp_path):
    place = Place("file", path=str(edges))
    source = find_source(place)
    draws = Draws(3)
    desk = Desk(place)
    asked = {"place": {"kind": "file", "path": str(edges)}, "a": source.side.to_dict(), "b": None,
             "draws": {"episodes": 3}}  # fmt: skip
    fitted = json.loads(desk.fit(asked)[0])
    assert fitted["regions"] == source.side.regions and fitted["tau"] == source.side.params.tau
    code = json.loads(desk.code(asked)[0])
    wanted = numbers_of(answer(source, source.side, draws, lambda: None).result)
    same(run_python(code["python"])["A"], wanted)


def test_a_checkpoint(source, place, checkpoint):
    sides = sides_of(source, policy=str(checkpoint))
    draws = Draws(2)
    wanted = numbers_of(answer(source, sides[0], draws, lambda: None).result)
    same(run_python(as_python(source, sides[:1], draws))["A"], wanted)
    assert str(checkpoint) in as_command(place, sides[:1], draws, source.side)


def test_a_model_of_stable_baselines(source, tmp_path):
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    import gymnasium

    env = gymnasium.make("rapo/GraphDiffusion-v0", nodes=60, graph_seed=1)
    model = sb3.PPO("MlpPolicy", env, n_steps=32, batch_size=32, device="cpu", seed=0)
    model.save(tmp_path / "model.zip")
    sides = sides_of(source, policy=str(tmp_path / "model.zip"))
    draws = Draws(2)
    wanted = numbers_of(answer(source, sides[0], draws, lambda: None).result)
    same(run_python(as_python(source, sides[:1], draws))["A"], wanted)
