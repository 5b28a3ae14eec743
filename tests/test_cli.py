"""The command line: what it prints, writes and refuses."""

import subprocess
import sys
import time

import pandas as pd
import pytest


def rapo(*args, cwd=None):
    command = [sys.executable, "-c", "from rapo.cli import main; main()", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


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
def test_bad_input_exits_with_2_and_writes_nothing(tmp_path, args, message):
    result = rapo(*args, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_rsd_and_report(tmp_path):
    words = ("--nodes", 50, "--episodes", 4, "--horizons", "60,60,60", "--deformation", "off")
    result = rapo("rsd", "moderate", *words, "--coupled", "--out", "p0", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "RAG" in result.stdout
    frame = pd.read_csv(tmp_path / "p0" / "episodes.csv")
    assert frame["RAG"].round(6).eq(1).all() and (frame["ASD"] == 0).all()
    again = rapo("rsd", "moderate", *words, "--out", "p0", cwd=tmp_path)
    assert again.returncode == 2 and "choose another folder" in again.stderr
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
        (("rsd", "moderate", "--graph", "none.npz"), "none.npz"),
        (("report", "nowhere"), "nowhere holds no RSD result: episodes.csv is missing"),
    ],
)
def test_bad_words_for_rsd_exit_with_2(tmp_path, args, message):
    result = rapo(*args, cwd=tmp_path)
    assert result.returncode == 2 and message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


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


def test_import_is_quick_and_light():
    code = "import sys, rapo; print(*{'torch', 'matplotlib', 'pandas'} & set(sys.modules))"
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        result = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        best = min(best, time.perf_counter() - start)
    assert result.stdout.strip() == ""
    assert best < 2  # 0.5 s on a quiet core, see `make bench`; here two workers share two cores
