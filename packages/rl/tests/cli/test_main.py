"""The command line: what it prints, writes and refuses."""

import os
import signal
import subprocess
import sys
from concurrent.futures import BrokenExecutor

import pandas as pd
import pytest
from waiting import until

from rapo import cli


def command(*args):
    return [sys.executable, "-c", "from rapo.cli import main; main()", *map(str, args)]


def rapo(*args, cwd=None):
    return subprocess.run(command(*args), capture_output=True, text=True, cwd=cwd, check=False)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "run"
    return out, rapo("demo", "--nodes", 50, "--episodes", 20, "--out", out)


def test_demo_writes_a_table_and_a_figure(demo):
    out, result = demo
    assert result.returncode == 0, result.stderr
    assert "RAPO" in result.stdout and "off@rep" in result.stdout
    table = pd.read_csv(out / "table.csv").set_index("kernel")
    assert table.index.tolist() == ["P0", "RAPO", "off@rep"]
    assert (table["episodes"] == 20).all()
    assert table.loc["RAPO", "RAG"] < 0.7 < table.loc["P0", "RAG"] < 1.3
    assert table.loc["off@rep", "RAG"] > 0.85
    assert (out / "replay.png").stat().st_size > 20_000


def test_demo_never_overwrites_silently(demo):
    out, _ = demo
    before = (out / "table.csv").read_bytes()
    result = rapo("demo", "--nodes", 50, "--episodes", 5, "--out", out)
    assert result.returncode == 2
    assert "exists; choose another --out or pass --force" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert (out / "table.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("demo", "--nodes", "5"), "nodes must be a whole number >= 10, got 5"),
        (("demo", "--episodes", "1"), "episodes must be >= 2"),
        (("demo", "--seed", "-1"), "seed must be a whole number >= 0, got -1"),
        (("demo", "--seed", "9" * 30), "seed must be a whole number >= 0"),
        (("demo", "--graph-seed", "-1"), "seed must be a whole number >= 0, got -1"),
        (("demo", "--nodes", "many"), "Invalid value for '--nodes'"),
        (("demo", "--speed", "3"), "--speed"),
        (("dance",), "dance"),
    ],
)
def test_bad_input_exits_with_2_and_writes_nothing(monkeypatch, capsys, tmp_path, args, message):
    monkeypatch.chdir(tmp_path)
    code, error = here(monkeypatch, capsys, *args)
    assert code == 2 and message in error
    assert len(error.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_rsd_and_report(tmp_path):
    words = ("--nodes", 50, "--episodes", 4, "--horizons", "60,60,60", "--deformation", "off")
    result = rapo("rsd", "moderate", *words, "--coupled", "--out", "p0", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "RAG" in result.stdout
    frame = pd.read_csv(tmp_path / "p0" / "episodes.csv")
    assert frame["RAG"].round(6).eq(1).all() and (frame["ASD"] == 0).all()
    again = rapo("rsd", "moderate", *words, "--out", "p0", cwd=tmp_path)
    assert again.returncode == 2 and "exists; choose another --out" in again.stderr
    page = rapo("report", "p0", "--out", "page.html", cwd=tmp_path)
    assert page.returncode == 0, page.stderr
    text = (tmp_path / "page.html").read_text()
    assert "AUC-R" in text and "<script src" not in text and "http://" not in text.split("<svg")[0]
    assert rapo("report", "p0", "--out", "page.html", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("rsd", "nobody"), "no policy is called 'nobody'"),
        (("rsd", "model.zip"), "there is no model at model.zip"),
        (("rsd", "collections:OrderedDict", "--nodes", "50"), "got the class OrderedDict"),
        (("rsd", "math:nothing"), "cannot load the policy math:nothing"),
        (("rsd", "moderate", "--horizons", "5,5"), "three whole numbers such as 500,200,500"),
        (("rsd", "moderate", "--horizons", "0,5,5", "--nodes", "50"), "three whole numbers"),
        (("rsd", "moderate", "--deformation", "much", "--nodes", "50"), "deformation must be"),
        (("rsd", "moderate", "--graph", "none.npz"), "none.npz: No such file or directory"),
        (("report", "nowhere"), "episodes.csv is missing; rapo rsd POLICY --out writes one"),
    ],
)
def test_bad_words_for_rsd_exit_with_2(monkeypatch, capsys, tmp_path, args, message):
    monkeypatch.chdir(tmp_path)
    code, error = here(monkeypatch, capsys, *args)
    assert code == 2 and message in error
    assert len(error.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def here(monkeypatch, capsys, *words):
    """The same in this process, which has loaded everything already."""
    monkeypatch.setattr(sys, "argv", ["rapo", *words])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train", "give a method such as RAPO, or --config"),
        ("train HERO", "no method is called 'HERO'; known are GE, SS"),
        ("train off@rep", "off@rep is an evaluation of a trained RAPO"),
        ("train RAPO --nodes 5", "nodes must be a whole number >= 10, got 5"),
        ("train RAPO --steps many", "steps must be a whole number such as 2e6, got 'many'"),
        ("train RAPO --steps 1e30", ">= 1 and <= 1000000000000000, got 1000000000000000019"),
        ("train RAPO --graph none.npz", "none.npz: No such file or directory"),
        ("train RAPO --graph none.npz --nodes 50", "give either --graph none.npz or --nodes"),
        ("train RAPO --graph none.npz --graph-seed 3", "give either --graph none.npz or --nodes"),
        ("train RAPO --jobs 0", "jobs must be a whole number >= 1, got 0"),
        ("train RAPO --out taken --nodes 50", "taken is a file; choose another --out"),
        ("train Shield --policy none.pt", "none.pt is a checkpoint of rapo 0.2"),
        ("rsd run/checkpoint.pt", "run/checkpoint.pt is a checkpoint of rapo 0.2"),
        ("rsd run", "run is a checkpoint of rapo 0.2"),
        ("rsd cut", "was cut before it was first saved; rapo train goes on with it by --resume"),
        ("rsd moderate --nodes 50 --out taken --force", "taken is a file; choose another --out"),
        ("calibrate --settings 0 --out new", "--settings must be a whole number >= 1, got 0"),
        ("calibrate --jobs 0 --out new", "--jobs must be a whole number >= 1, got 0"),
        ("calibrate --steps few --out new", "--steps must be a whole number such as 2e6"),
        ("calibrate --out taken", "taken is a file; choose another --out"),
        ("reproduce all,table1 --out new", "all stands alone, got 'all,table1'"),
        ("reproduce table1 --preset smoke --out taken", "taken is a file; choose another --out"),
        ("report run", "run holds no RSD result: episodes.csv is missing"),
    ],
)
def test_bad_words_end_with_one_line_and_change_nothing(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name in ("taken", "run/checkpoint.pt", "cut/run.toml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    code, told = here(monkeypatch, capsys, *words.split())
    assert code == 2 and message in told
    assert len(told.strip().splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before
    assert {path.read_text() for path in before if path.is_file()} == {"mine"}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ModuleNotFoundError("no torch", name="torch"), "pip install 'rapo-rl[torch]'"),
        (BrokenExecutor(), "a process was killed"),
        (KeyboardInterrupt(), "stopped; nothing was written"),
    ],
)
def test_what_goes_wrong_around_a_command_is_one_line_too(error, message, monkeypatch, capsys):
    def fails(*words, **options):
        raise error

    monkeypatch.setattr("rapo.cli.train.run_configs", fails)
    code, told = here(monkeypatch, capsys, "train", "RAPO")
    assert code == (130 if isinstance(error, KeyboardInterrupt) else 2)
    assert message in told and len(told.strip().splitlines()) == 1


def stopped(folder, condition, *args):
    """A command that is ended by Ctrl-C, which a terminal sends to all its processes."""
    process = subprocess.Popen(
        command(*args), cwd=folder, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # also where these tests run in the background, which lets children ignore it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        until(condition, lambda: process.poll() is None)
        os.killpg(process.pid, signal.SIGINT)
        return process.communicate()[1], process.returncode
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


TRAIN = ("train", "RAPO", "--nodes", "40", "--steps", "1e7", "--set", "minibatch=64",
         "--set", "rollout=128", "--set", "envs=4", "--set", "hidden=16")  # fmt: skip


def test_a_stopped_training_says_how_to_go_on_and_its_policy_that_it_is_not_finished(tmp_path):
    """Also of the fixed Shield, whose compute is told."""
    words = ("train", "Shield", *TRAIN[2:], "--out", "run")
    path = tmp_path / "run" / "weights.safetensors"
    told, code = stopped(tmp_path, path.exists, *words)
    assert code == 130
    assert told.strip() == (
        f"rapo: stopped; to go on from what was saved last in run: rapo {' '.join(words)} --resume"
    )
    result = rapo("rsd", path.parent, "--episodes", 2, "--horizons", "20,5,20")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "The shield (threshold 0.5) simulated 4,800 transitions per environment step." in lines
    last = next(line for line in lines if "not finished" in line)
    done = int(last.split(": ")[1].split()[0].replace(",", ""))
    assert done % (25 * 128) == 0 < done and last.endswith(f" {done:,} of 10,000,000 steps.")


def test_ctrl_c_ends_all_runs_side_by_side_in_one_line(tmp_path):
    runs = [tmp_path / "runs" / f"g0-s{seed}" for seed in (0, 1)]

    def begun():
        return all((run / "run.toml").exists() for run in runs)

    words = (*TRAIN, "--seed", "0,1", "--jobs", "2", "--out", "runs")
    told, code = stopped(tmp_path, begun, *words)
    assert code == 130
    assert told.startswith("rapo: stopped; to go on from what was saved last in runs/g0-s0 and 1")
    assert told.rstrip().endswith("--seed 0,1 --jobs 2 --out runs --resume")
    assert len(told.strip().splitlines()) == 1
    again = rapo("rsd", runs[0])
    if again.returncode:  # cut before it was first saved
        assert "was cut before it was first saved" in again.stderr


def test_bench_outside_a_checkout_says_where_to_go(tmp_path):
    result = rapo("bench", cwd=tmp_path)
    assert result.returncode == 2 and "source checkout" in result.stderr


@pytest.mark.parametrize(
    "args",
    [("--help",), ("demo", "--help"), ("rsd", "--help"), ("report", "--help"), ("bench", "--help")],
)
def test_help(args):
    result = rapo(*args)
    assert result.returncode == 0 and "Usage" in result.stdout


def test_import_is_light():
    code = "import sys, rapo; print(*{'torch', 'matplotlib', 'pandas'} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == ""


WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("no torch", name="torch")

sys.meta_path.insert(0, NoTorch())
from rapo.cli import main
main()
"""


@pytest.mark.parametrize(
    "words",
    [
        "demo --nodes 50 --episodes 2 --out demo",
        "rsd aggressive --nodes 40 --episodes 2 --horizons 40,10,40",
        "docs faq",
    ],
)
def test_a_first_hour_needs_no_torch(words, tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *words.split()],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
