"""`rapo graph`: from a file to a saved graph, and what is shown of one."""

import gzip
import shlex
import sys

import networkx as nx
import pytest

from rapo import cli
from rapo.cascade.graph import Graph
from rapo.graphs.description import network_lines
from rapo.graphs.generate import generate
from rapo.graphs.load import load_edges


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """The command in this process and a folder of its own: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(words):
        monkeypatch.setattr(sys, "argv", ["rapo", *shlex.split(words)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return (int(caught.value.code or 0), *capsys.readouterr())

    return call


@pytest.fixture
def files(tmp_path):
    """A network of 40 nodes with a self-loop and a repeat, and its labels, in the folder."""
    net = nx.gnp_random_graph(40, 0.15, seed=2, directed=True)
    rows = [f"{u},{v},{0.1 + (u + v) % 5 / 10:.1f}" for u, v in net.edges]
    clean = "\n".join(["src,dst,p", *rows]) + "\n"
    (tmp_path / "edges.csv").write_text(clean)
    (tmp_path / "rough.csv").write_text(clean + "3,3,0.5\n" + rows[0] + "\n")
    party = [f"{i},{'R' if i < 12 else 'D'},u{i}" for i in range(40)]
    (tmp_path / "nodes.csv").write_text("\n".join(["node,party,name", *party]) + "\n")
    return tmp_path


# --- saving --------------------------------------------------------------------------------


def test_a_file_becomes_the_graph_that_the_loader_gives(run, files):
    code, out, _ = run(
        "graph edges.csv --labels nodes.csv --sensitive party=R --sensitive-part largest "
        "--seed 3 --stimuli 5 --out net.npz"
    )
    assert code == 0
    saved = Graph.load("net.npz")
    same = load_edges(
        "edges.csv",
        labels="nodes.csv",
        sensitive="party=R",
        sensitive_part="largest",
        seed=3,
        stimuli=5,
    )
    assert saved == same
    assert saved.labels == same.labels and set(saved.labels) == {"party", "name"}
    assert saved.hash in out and "net.npz" in out
    assert sorted(p.name for p in files.iterdir()) == [
        "edges.csv", "net.npz", "nodes.csv", "rough.csv",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--probability p", {"probability": "p"}),
        ("--probability p --scale", {"probability": "p", "scale": True}),
        ("--no-scale", {"scale": False}),
        ("--undirected --drop --no-scale",
         {"directed": False, "self_loops": "drop", "duplicates": "drop", "scale": False}),
        ("--source dst --target src --no-scale",
         {"source": "dst", "target": "src", "scale": False}),
        ("--sensitive 3,4,5,6,7 --sensitive-part largest --no-scale",
         {"sensitive": [3, 4, 5, 6, 7], "sensitive_part": "largest", "scale": False}),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_option_reaches_the_loader(run, files, words, options):
    assert run(f"graph edges.csv {words} --out net.npz")[0] == 0
    assert Graph.load("net.npz") == load_edges("edges.csv", **options)


def test_graphml_and_saved_graphs_are_files_too(run, files):
    nx.write_graphml(nx.karate_club_graph(), "club.graphml")
    assert run("graph club.graphml --out a.npz")[0] == 0
    assert run("graph a.npz --out b.npz")[0] == 0
    assert Graph.load("a.npz") == Graph.load("b.npz")
    assert "club" in Graph.load("b.npz").labels


def test_a_warning_names_the_option_that_mends_it(run, files):
    (files / "weak.csv").write_text((files / "edges.csv").read_text().replace(",0.", ",0.0"))
    with pytest.warns(UserWarning, match="--scale") as warned:
        code, out, _ = run("graph weak.csv --probability p --out net.npz")
    assert code == 0 and "net.npz" in out and len(warned) == 1
    assert Graph.load("net.npz").n == 40


# --- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("graph", ["argument"]),
        ("graph show", ["FILE"]),
        ("graph none.csv --out net.npz", ["none.csv"]),
        ("graph edges.csv", ["--out", "edges.npz"]),
        ("graph edges.csv --out net.csv", [".npz", "net.csv"]),
        ("graph edges.csv --out nowhere/net.npz", ["nowhere"]),
        ("graph show edges.csv --out net.npz", [".png", "net.npz"]),
        ("graph edges.csv nodes.csv --out net.npz", ["one file", "nodes.csv"]),
        ("graph show edges.csv nodes.csv", ["one file", "nodes.csv"]),
        ("graph rough.csv --out net.npz", ["line", "--drop"]),
        ("graph edges.csv --labels nodes.csv --sensitive zone=1 --out net.npz",
         ["zone", "party"]),
        ("graph edges.csv --sensitive party=R --out net.npz", ["party", "--labels"]),
        ("graph edges.csv --labels nodes.csv --sensitive party=X --out net.npz", ["X", "R"]),
        ("graph edges.csv --labels nodes.csv --sensitive name=u3 --out net.npz",
         ["single node 3", "--sensitive"]),
        ("graph edges.csv --sensitive 3 --out net.npz", ["single node 3"]),
        ("graph edges.csv --source from --out net.npz", ["from", "--source"]),
        ("graph edges.csv --probability q --out net.npz", ["'q'", "--probability"]),
        ("graph edges.csv --probability dst --out net.npz", ["probability", "edges.csv, line"]),
        ("graph edges.csv --stimuli 0 --out net.npz", ["stimuli", "0"]),
        ("graph edges.csv --labels edges.npz --out net.npz", ["edges.npz"]),
        ("graph saved.npz --seed 3 --out net.npz", ["saved.npz", "seed"]),
        ("graph text.npz --out net.npz", ["text.npz"]),
    ],
)  # fmt: skip
def test_bad_input_ends_with_one_line_and_nothing_written(run, files, words, parts):
    generate(20, 0, scale=0.3).save(files / "saved.npz")
    (files / "text.npz").write_bytes(b"PK\x03\x04 not a graph")
    before = {p.name: p.read_bytes() for p in files.iterdir()}
    code, _, err = run(words)
    assert code == 2
    lines = [line for line in err.splitlines() if line.strip()]
    assert len(lines) == 1
    assert all(part in lines[0] for part in parts), lines[0]
    assert {p.name: p.read_bytes() for p in files.iterdir()} == before


def test_nothing_is_overwritten_unless_forced(run, files):
    (files / "net.npz").write_bytes(b"mine")
    (files / "net.png").write_bytes(b"mine")
    for words in ("graph edges.csv --no-scale --out net.npz", "graph show edges.csv --out net.png"):
        code, _, err = run(words)
        assert code == 2 and "--force" in err
    assert (files / "net.npz").read_bytes() == (files / "net.png").read_bytes() == b"mine"
    assert run("graph edges.csv --no-scale --out net.npz --force")[0] == 0
    assert Graph.load("net.npz").n == 40


def test_a_failed_load_leaves_the_earlier_file(run, files):
    (files / "net.npz").write_bytes(b"mine")
    assert run("graph rough.csv --out net.npz --force")[0] == 2
    assert (files / "net.npz").read_bytes() == b"mine"


# --- showing -------------------------------------------------------------------------------


def test_show_says_what_the_graph_is_and_draws_it(run, files):
    words = "edges.csv --labels nodes.csv --sensitive party=R --sensitive-part largest"
    assert run(f"graph {words} --out net.npz")[0] == 0
    graph = Graph.load("net.npz")
    code, out, err = run("graph show net.npz --out net.png")
    assert (code, err) == (0, "")
    assert graph.hash in out and f"{graph.edges:,}" in out and "net.png" in out
    assert max(map(len, out.splitlines())) <= 80
    assert (files / "net.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert (files / "net.png").stat().st_size > 20_000
    _, again, _ = run(f"graph show {words}")  # any file can be shown, with the same options
    assert [line for line in again.splitlines() if "wrote" not in line] == [
        line for line in out.splitlines() if "wrote" not in line
    ]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_components_and_what_was_left_out(files):
    rough = (files / "rough.csv").read_text() + "90,91,0.5\n"
    (files / "apart.csv.gz").write_bytes(gzip.compress(rough.encode()))
    graph = load_edges(files / "apart.csv.gz", self_loops="drop", duplicates="drop", scale=False)
    lines = network_lines(graph)
    assert dict(lines)["nodes"] == "42, 2 components, the largest of 40"
    assert dict(lines)["left out"] == "1 self-loops, 1 repeated edges"
