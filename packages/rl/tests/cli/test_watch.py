"""`rapo watch`: what it films, and what it refuses in one line with nothing written."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import rapo
from rapo import cli
from rapo.agents.config import PPOConfig
from rapo.agents.resolve import resolve
from rapo.agents.run_config import graph_run
from rapo.agents.saved_run import load_agent
from rapo.agents.train import train
from rapo.graphs.generate import generate
from rapo.show.film import record
from rapo.show.film.subject import open_subject
from rapo.suite.domains import DOMAINS

PLATFORMS = [domain for domain in DOMAINS.values() if domain.name != "cascade"]
SPANS = (12, 6, 12)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A trained RAPO on 50 nodes."""
    out = tmp_path_factory.mktemp("run")
    tiny = PPOConfig(envs=4, rollout=64, minibatch=32, epochs=1, hidden=8)
    train(graph_run("RAPO", nodes=50, graph_seed=3, steps=64, ppo=tiny), out)
    generate(50, 4).save(out / "other.npz")
    return out


@pytest.fixture
def watch(monkeypatch, capsys, tmp_path):
    """Run the command in an empty folder; exit code, standard output and error."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["rapo", "watch", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return run


def test_it_films_a_graph(watch):
    words = ("--nodes", 60, "--graph-seed", 1000, "--horizons", "20,10,20", "--every", 5)
    code, out, _ = watch(*words, "--size", 400, "--fps", 10, "--out", "new/a.gif")
    assert code == 0 and "new/a.gif: 10 frames, 2.5 s" in out
    image = Image.open("new/a.gif")
    assert (image.n_frames, image.size[0]) == (10, 400)
    before = Path("new/a.gif").read_bytes()
    code, _, err = watch(*words, "--out", "new/a.gif")
    assert code == 2 and "exists" in err and Path("new/a.gif").read_bytes() == before
    code, _, _ = watch(*words, "--size", 400, "--fps", 10, "--out", "new/a.gif", "--force")
    assert code == 0 and Path("new/a.gif").read_bytes() == before


@pytest.mark.parametrize("domain", PLATFORMS, ids=lambda domain: domain.name)
def test_it_films_every_platform(watch, monkeypatch, tmp_path, domain):
    monkeypatch.setenv("RAPO_DATA", str(tmp_path / "none"))  # the stand-in, which is small
    words = ("--env", domain.env, "--platform-seed", 1000, "--horizons", "12,6,12", "--every", 6)
    code, _, err = watch(*words, "--size", 480, "--out", "a.gif")
    assert code == 0, err
    image = Image.open("a.gif")
    assert (image.n_frames, image.size[0]) == (5, 480)
    assert [file.name for file in tmp_path.iterdir()] == ["a.gif"]


def test_it_films_a_checkpoint_on_its_own_graph(trained):
    env, policy = open_subject("rapo/GraphDiffusion-v0", policy=str(trained))
    graph_hash = resolve(load_agent(trained)[1]).graph_hash
    assert env.graph.hash == graph_hash and env.engine.scope.kind == "full"
    recording = record(env, policy, horizons=SPANS, every=6)
    found = rapo.rsd.evaluate(env, policy, 1, 0, True, horizons=SPANS)
    np.testing.assert_array_equal(recording.reach, found.traces["reach"][0])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--env rapo/Nothing-v0", "--env is one of rapo/GraphDiffusion-v0, rapo/Feed-v0"),
        ("--out a.png", "written to .gif or .mp4, got a.png"),
        ("--out a", "written to .gif or .mp4, got a"),
        ("--out taken.gif", "taken.gif exists"),
        ("--out folder.gif --force", "folder.gif is a folder"),
        ("--out taken.gif/a.gif", "taken.gif is no folder to write in"),
        ("--nodes 50 --stimulus 99", "stimulus must be in 1..20"),
        ("--nodes 50 --stimulus 0", "stimulus must be in 1..20"),
        ("--nodes 50 --every 201", "every must be at most the 200 steps"),
        ("--every 0", "every must be a whole number >= 1, got 0"),
        ("--fps 51", "fps must be a whole number >= 1 and <= 50, got 51"),
        ("--size 401", "size must be an even number of pixels, got 401"),
        ("--size 100", "size must be a whole number >= 320"),
        ("--episode -1", "seed must be a whole number >= 0, got -1"),
        ("--nodes 50 --action 3", "action must be in 0..2, got 3"),
        ("--nodes 50 --action bold", "no policy is called 'bold'; choose aggressive"),
        ("--action 1 --policy scripted", "not both"),
        ("--policy nobody", "no policy is called 'nobody'; choose aggressive"),
        ("--policy none.pt", "none.pt is a checkpoint of rapo 0.2"),
        ("--policy RUN --nodes 77", "was trained on"),
        ("--policy RUN --graph RUN/other.npz", "was trained on graph"),
        ("--env rapo/Twin-v0 --policy RUN", "trained on rapo/GraphDiffusion-v0"),
        ("--env rapo/Twin-v0 --nodes 50", "--nodes 50 is for graphs"),
        ("--platform-seed 1", "--platform-seed 1 is for platforms"),
        ("--graph none.npz", "none.npz"),
        ("--graph x.npz --nodes 50", "not both"),
        ("--horizons 1,2", "horizons must be three whole numbers"),
        ("--speed 3", "--speed"),
    ],
)
def test_bad_input_is_refused_in_a_line_and_nothing_is_written(watch, trained, words, message):
    Path("taken.gif").write_bytes(b"mine")
    Path("folder.gif").mkdir()
    code, _, err = watch(*words.replace("RUN", str(trained)).split())
    assert code == 2
    assert message in err and len(err.strip().splitlines()) == 1
    assert sorted(file.name for file in Path().iterdir()) == ["folder.gif", "taken.gif"]
    assert Path("taken.gif").read_bytes() == b"mine"


def test_an_mp4_without_ffmpeg_names_the_extra(watch, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    code, _, err = watch("--out", "a.mp4")
    assert code == 2 and "rapo-rl[watch]" in err and len(err.strip().splitlines()) == 1
    assert list(Path().iterdir()) == []


def test_importing_rapo_does_not_load_it():
    code = "import rapo, sys; sys.exit(any(name.startswith('rapo.show') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
