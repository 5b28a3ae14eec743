"""Loaders: files and networkx objects to graphs."""

import gzip
import json
import warnings
from functools import partial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import DATA

import rapo.graphs.scale
from rapo.cascade.graph import Graph
from rapo.cascade.setting import Setting
from rapo.graphs.generate import generate
from rapo.graphs.load import from_networkx, load_edges, load_graphml, read_graph

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # tested where they are asked for
COMPACT = Setting.named("compact")
RING = [(i, (i + 1) % 12) for i in range(12)] + [(i, (i + 3) % 12) for i in range(12)]


def data(folder, file):
    path = DATA / folder / file
    if not path.exists():
        pytest.skip(f"the data set {folder}/{file} is not beside the repository")
    return path


def write(path, rows, header="src,dst"):
    text = "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def ring(tmp_path):
    return write(tmp_path / "ring.csv", RING)


def edge_dict(graph):
    return dict(zip(zip(graph.sources, graph.indices, strict=True), graph.prob, strict=True))


# Reading


def test_a_plain_edge_list_becomes_a_graph(ring):
    graph = load_edges(ring, scale=False)
    assert isinstance(graph, Graph)
    assert (graph.n, graph.edges, graph.stimuli) == (12, 24, 20)
    assert set(edge_dict(graph)) == set(RING)
    assert 0.15 <= graph.sensitive.mean() <= 0.25
    assert {k: v for k, v in graph.meta.items() if k != "capped_edges"} == {
        "source": "ring.csv",
        "seed": 0,
        "self_loops_dropped": 0,
        "duplicates_dropped": 0,
        "components": 1,
        "ids": list(range(12)),
    }
    json.dumps(dict(graph.meta))


@settings(max_examples=15, deadline=None)
@given(st.permutations(RING))
def test_the_order_of_lines_does_not_matter(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("order")
    one, two = (write(folder / f"{i}.csv", r) for i, r in enumerate((RING, rows)))
    assert load_edges(one, scale=False).hash == load_edges(two, scale=False).hash


def test_the_same_seed_gives_the_same_graph_and_another_one_does_not(ring):
    hashes = [load_edges(ring, seed=seed, scale=False).hash for seed in (0, 0, 1)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_columns_by_name_and_both_directions(tmp_path):
    rows = [("x", 0, 1, 0.5), ("y", 1, 2, 0.25)]
    path = write(tmp_path / "u.csv", rows, "kind,from,to,p")
    graph = load_edges(path, source="from", target="to", probability="p", directed=False)
    assert edge_dict(graph) == {(0, 1): 0.5, (1, 0): 0.5, (1, 2): 0.25, (2, 1): 0.25}


# Probabilities


def test_drawn_probabilities_are_beta_and_stronger_inside(tmp_path):
    rows = [(i, j) for i in range(60) for j in range(60) if i != j]
    path = write(tmp_path / "full.csv", rows)
    setting = COMPACT.replace(inside_weight=3.0)
    graph = load_edges(path, scale=False, setting=setting, sensitive=range(30))
    inside = graph.sensitive[graph.sources] & graph.sensitive[graph.indices]
    assert graph.prob[~inside].mean() == pytest.approx(2 / 7, abs=0.02)
    assert graph.prob[inside].mean() > 0.65
    assert graph.prob.max() == np.float32(setting.edge_cap)
    assert graph.meta["capped_edges"] == (graph.prob == graph.prob.max()).sum() > 0
    other = load_edges(path, scale=False, setting=setting, sensitive=range(10))
    np.testing.assert_array_equal(other.prob[~inside], graph.prob[~inside])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"scale": False}, False),
        ({"scale": True}, True),
        ({"probability": "p"}, False),
        ({"probability": "p", "scale": True}, True),
    ],
)
def test_only_drawn_probabilities_are_scaled_unless_told(tmp_path, monkeypatch, options, expected):
    seen = []

    def scale_to_target(graph, setting, *, seed=0):
        seen.append((setting, seed))
        assert graph.meta["capped_edges"] == 0
        return graph.replace(meta={**graph.meta, "scale": 1.0})

    monkeypatch.setattr(rapo.graphs.load, "scale_to_target", scale_to_target)
    path = write(tmp_path / "s.csv", [(*pair, 0.5) for pair in RING], "src,dst,p")
    load_edges(path, seed=4, **options)
    assert seen == ([(Setting.default(), 4)] if expected else [])


# V_sens, stimuli, positions


@pytest.fixture
def labels(tmp_path):
    rows = [(i, "north" if i < 4 else "south", i % 2) for i in range(12)] + [(20, "lone", 0)]
    return write(tmp_path / "labels.csv", rows, "node,area,parity")


def test_the_sensitive_set_by_label_ids_or_mask(ring, labels):
    by_label = load_edges(ring, labels=labels, sensitive="area=north", scale=False)
    assert np.flatnonzero(by_label.sensitive).tolist() == [0, 1, 2, 3]
    assert by_label.n == 13, "a node that only the labels name is part of the graph"
    assert by_label.meta["unlabelled"] == 0
    mask = np.arange(13) < 4
    for same in ([3, 2, 1, 0], np.arange(4), ["0", "1", "2", "3"], {0, 1, 2, 3}, mask, list(mask)):
        assert load_edges(ring, labels=labels, sensitive=same, scale=False) == by_label


def test_a_disconnected_sensitive_set_needs_its_largest_part(ring):
    apart = {"sensitive": [0, 1, 2, 7], "scale": False}
    with pytest.raises(ValueError, match=r"connected, got 2 parts of sizes \[3, 1\]; use its larg"):
        load_edges(ring, **apart)
    graph = load_edges(ring, sensitive_part="largest", **apart)
    assert np.flatnonzero(graph.sensitive).tolist() == [0, 1, 2]
    assert graph.meta["sensitive_left_out"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sensitive": "north"}, "sensitive='north' is not of the form 'column=value'; give"),
        ({"sensitive": "zone=1"}, r"label is called 'zone', there are \['area', 'parity'\]; choo"),
        ({"sensitive": "area=west"}, r"no node has area=west; area takes values like \['lone', "),
        ({"sensitive": [3, 99]}, "names 1 unknown nodes, first 99; use the ids of the data"),
        ({"sensitive": [True, False]}, "has 2 booleans for 13 nodes; give one per node"),
        ({"sensitive": []}, "empty list; name at least one node"),
        ({"sensitive": [False] * 13}, "empty; name at least one node"),
        ({"sensitive_part": "some"}, "must be 'all' or 'largest', got 'some'"),
        ({"self_loops": "keep"}, "self_loops must be 'error' or 'drop', got 'keep'"),
        ({"duplicates": "sum"}, "duplicates must be 'error' or 'drop', got 'sum'"),
        ({"stimuli": 0}, "stimuli must be a whole number >= 1, got 0"),
        ({"support": 0}, "support must be a whole number >= 1, got 0"),
        ({"positions": np.zeros((3, 2))}, r"shape \(13, 2\), nodes in sorted order.*got \(3, 2\)"),
        ({"positions": np.full((13, 2), 2.0)}, "unit square, node 0 is at .*rescale them"),
        ({"positions": "x,y"}, r"no node label is called 'x', there are"),
        ({"positions": "area,parity"}, r"node 0 has no position in 'area,parity', got \['north'"),
        ({"positions": "parity"}, r"node 0 has no position in 'parity', got \['0'\]; give every"),
    ],
)
def test_bad_options_are_refused(ring, labels, options, message):
    with pytest.raises(ValueError, match=message):
        load_edges(ring, labels=labels, scale=False, **options)


def test_labels_without_a_file_and_labelled_twice(ring, tmp_path):
    with pytest.raises(ValueError, match=r"called 'a', there are \[\]; .* pass labels=<file>"):
        load_edges(ring, sensitive="a=1")
    twice = write(tmp_path / "twice.csv", [(0, "a"), (1, "a"), (0, "b")], "node,area")
    with pytest.raises(ValueError, match=r"line 4: node 0 was labelled on line 2; keep one row"):
        load_edges(ring, labels=twice)


def test_positions_from_labels_are_scaled_and_arrays_are_kept(ring, tmp_path):
    rows = [(i, 100 + 4 * i, 50) for i in range(12)]
    labels = write(tmp_path / "xy.csv", rows, "node,x,y")
    graph = load_edges(ring, labels=labels, positions="x,y", scale=False)
    np.testing.assert_allclose(graph.positions[:, 0], np.linspace(0, 1, 12), atol=1e-6)
    np.testing.assert_array_equal(graph.positions[:, 1], 0.5)
    given_positions = np.full((12, 2), 0.25)
    graph = load_edges(ring, positions=given_positions, scale=False)
    np.testing.assert_array_equal(graph.positions, given_positions)


def test_number_and_support_of_stimuli(ring):
    graph = load_edges(ring, stimuli=3, support=5, scale=False)
    assert graph.support.shape == (3, 5)
    assert load_edges(ring, scale=False).support.shape == (20, 12), "the component has 12 nodes"


# networkx and GraphML


def test_networkx_gives_the_graph_that_the_edge_list_gives(ring):
    assert from_networkx(nx.DiGraph(RING), scale=False) == load_edges(ring, scale=False)


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(8)))
def test_the_order_of_networkx_nodes_does_not_matter(order):
    straight, shuffled = nx.Graph(), nx.Graph()
    straight.add_nodes_from(range(8))
    shuffled.add_nodes_from(order)
    for graph in (straight, shuffled):
        graph.add_edges_from((i, (i + 1) % 8) for i in range(8))
    assert from_networkx(straight, scale=False) == from_networkx(shuffled, scale=False)


def test_graphml_round_trip_with_attributes(tmp_path):
    source = nx.path_graph(5)
    for i in source:
        source.nodes[i].update(x=float(i), y=2.0, side="left" if i < 2 else "right")
    nx.set_edge_attributes(source, 0.125, "p")
    path = tmp_path / "path.graphml"
    nx.write_graphml(source, path)
    options = {"probability": "p", "sensitive": "side=left", "positions": "x,y"}
    graph = load_graphml(path, **options)
    assert graph == from_networkx(source, **options)
    assert graph.meta["source"] == "path.graphml"
    assert graph.edges == 8 and set(graph.prob) == {np.float32(0.125)}
    assert graph.sensitive.tolist() == [True, True, False, False, False]
    np.testing.assert_allclose(graph.positions[:, 0], np.linspace(0, 1, 5))


def test_pairs_as_positions_only_when_asked():
    source = nx.path_graph(4)
    nx.set_node_attributes(source, {i: (10.0 * i, 0.0) for i in range(4)}, "pos")
    asked = from_networkx(source, positions="pos", scale=False)
    np.testing.assert_allclose(asked.positions[:, 0], np.linspace(0, 1, 4), atol=1e-6)
    assert not np.allclose(from_networkx(source, scale=False).positions, asked.positions)
    del source.nodes[2]["pos"]
    with pytest.raises(ValueError, match=r"node 2 has no position in 'pos', got \[None\]; give"):
        from_networkx(source, positions="pos")


def test_parallel_edges_are_duplicates():
    source = nx.MultiDiGraph([("a", "b"), ("b", "c"), ("a", "b")], name="multi")
    with pytest.raises(ValueError, match=r"multi, edge a -> b repeats multi, edge a -> b \(1 dup"):
        from_networkx(source)
    graph = from_networkx(source, duplicates="drop", scale=False)
    assert graph.edges == 2 and graph.meta["duplicates_dropped"] == 1
    assert graph.meta["source"] == "multi"


def test_bad_networkx_graphs_are_refused():
    with pytest.raises(ValueError, match=r"networkx graph, edge 0 -> 0: node 0 points to itself"):
        from_networkx(nx.DiGraph([(0, 1), (0, 0)]))
    with pytest.raises(ValueError, match=r"edge 0 -> 1: .* in \[0, 1\], got None; rescale or"):
        from_networkx(nx.DiGraph([(0, 1)]), probability="weight")
    with pytest.raises(ValueError, match=r"two nodes written '1'; relabel its nodes"):
        from_networkx(nx.DiGraph([(0, 1), (0, "1")]))
    with pytest.raises(ValueError, match="holds no edge between two nodes"):
        from_networkx(nx.empty_graph(3))


# Labels


def test_labels_stay_with_the_graph_in_node_order(tmp_path):
    edges = write(tmp_path / "e.csv", [(20, 3), (3, 100), (100, 20)])
    rows = [(100, "north", ""), (7, "lone", "x"), (3, "south", "y")]
    labels = write(tmp_path / "l.csv", rows, "node,area,tag")
    graph = load_edges(edges, labels=labels, sensitive=[3, 20], scale=False)
    assert graph.meta["ids"] == [3, 7, 20, 100]
    assert graph.labels == {
        "area": ("south", "lone", None, "north"),
        "tag": ("y", "x", None, None),
    }
    assert load_edges(edges, sensitive=[3, 20], scale=False).labels == {}
    again = Graph.load(graph.save(tmp_path / "g.npz"))
    assert again.labels == graph.labels


def test_attributes_of_networkx_and_graphml_become_text(tmp_path):
    source = nx.cycle_graph(5)
    nx.set_node_attributes(source, {0: "a", 1: "b", 3: "a"}, "kind")
    nx.set_node_attributes(source, {i: i / 2 for i in range(5)}, "size")
    graph = from_networkx(source, sensitive=[0, 1], scale=False)
    assert graph.labels == {
        "kind": ("a", "b", None, "a", None),
        "size": ("0.0", "0.5", "1.0", "1.5", "2.0"),
    }
    nx.write_graphml(source, tmp_path / "g.graphml")
    read = load_graphml(tmp_path / "g.graphml", sensitive=[0, 1], scale=False)
    assert read.labels == graph.labels and read == graph


def test_scaling_keeps_the_labels(ring, labels):
    graph = load_edges(ring, labels=labels, sensitive="area=north", setting=COMPACT)
    assert "scale" in graph.meta
    assert graph.labels["area"].count("north") == 4


# What a user is warned about


def said_by(load):
    """A graph and the warnings of loading it."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        graph = load()
    return graph, [str(one.message) for one in record if issubclass(one.category, UserWarning)]


def test_probabilities_above_the_cap_are_capped_counted_and_named(tmp_path):
    prob = [1.0, 0.96, 0.95, 0.93, 0.92] + [0.5] * (len(RING) - 5)
    path = write(
        tmp_path / "p.csv", [(*e, p) for e, p in zip(RING, prob, strict=True)], "src,dst,p"
    )
    graph, said = said_by(lambda: load_edges(path, probability="p", setting=COMPACT))
    assert graph.prob.max() == np.float32(0.95)
    assert graph.meta["capped_edges"] == 2
    assert len(said) == 2
    assert said[0].startswith("2 of 24 edges") and "0.95" in said[0]
    assert said[1].startswith("5 of 24 edges") and "0.91" in said[1]
    setting = COMPACT.replace(edge_cap=1.0)
    free, said = said_by(lambda: load_edges(path, probability="p", setting=setting))
    assert free.prob.max() == 1 and free.meta["capped_edges"] == 0
    assert [text.split(" edges")[0] for text in said] == ["5 of 24"]


def test_scaled_probabilities_are_capped_too(tmp_path):
    """Two edges are so much stronger than the rest that the factor lifts them over the cap."""
    rows = [(*pair, 0.02 if i > 1 else 0.9) for i, pair in enumerate(RING)]
    path = write(tmp_path / "p.csv", rows, "src,dst,p")
    setting = COMPACT.replace(cascade_target=4.0)
    graph, said = said_by(lambda: load_edges(path, probability="p", scale=True, setting=setting))
    assert graph.meta["scale"] > 0.95 / 0.9
    assert graph.prob.max() == np.float32(0.95)
    assert graph.meta["capped_edges"] == 2
    assert len(said) == 2


def test_weak_given_probabilities_are_named_with_the_factor(tmp_path):
    rows = [(*pair, 0.05) for pair in RING]
    path = write(tmp_path / "weak.csv", rows, "src,dst,p")
    _, (said,) = said_by(lambda: load_edges(path, probability="p", setting=COMPACT))
    assert "0.12" in said and "scale=True" in said and "8.1" in said  # 2 x .05 / .81, and back
    setting = COMPACT.replace(cascade_target=4.0)
    strong = write(tmp_path / "strong.csv", [(*pair, 0.5) for pair in RING], "src,dst,p")
    for file, options in (
        (strong, {"probability": "p"}),
        (path, {"probability": "p", "scale": True}),
        (path, {"scale": False}),
    ):
        _, said = said_by(partial(load_edges, file, setting=setting, **options))
        assert said == []


def test_who_draws_or_scales_is_not_told_to_scale():
    chain = nx.DiGraph([(i, i + 1) for i in range(20)])  # no cycle: nothing sustains itself
    nx.set_edge_attributes(chain, 0.3, "p")
    small = COMPACT.replace(cascade_target=0.5)  # met where a seed reaches few others
    for options, told in (
        ({"probability": "p"}, True),
        ({"probability": "p", "scale": True}, False),
        ({"scale": False}, False),
    ):
        _, said = said_by(partial(from_networkx, chain, setting=small, **options))
        assert any("scale=True" in one for one in said) == told


def test_ordinary_graphs_are_not_warned_about():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_networkx(nx.karate_club_graph(), setting=COMPACT)
        from_networkx(nx.gnp_random_graph(80, 0.1, seed=1, directed=True))
        generate(50, 0)
        generate(100, 1)


# What cannot be worked with


def test_a_sensitive_set_of_one_node_is_refused_by_its_id(ring, labels):
    for options in (
        {"sensitive": [7]},
        {"sensitive": [0, 7], "sensitive_part": "largest"},
        {"sensitive": "area=lone", "labels": labels},
    ):
        with pytest.raises(ValueError, match="single node"):
            load_edges(ring, scale=False, **options)
    with pytest.raises(ValueError, match=r"\b7\b.*sensitive"):
        load_edges(ring, scale=False, sensitive=[7])
    with pytest.warns(UserWarning, match="single node"):
        assert from_networkx(nx.path_graph(4), scale=False).sensitive.sum() == 1


def test_a_saved_graph_from_which_nothing_reaches_the_sensitive_set_is_refused(tmp_path, ring):
    graph = load_edges(ring, sensitive=[0, 1], scale=False)
    inside = graph.sensitive[graph.indices]
    outside = graph.replace(
        support=[[5, 6]], weights=[[0.5, 0.5]], prob=np.where(inside, 0.0, graph.prob)
    )
    path = outside.save(tmp_path / "g.npz")
    with pytest.raises(ValueError, match=r"g\.npz.*no directed path"):
        read_graph(path)
    assert Graph.load(path) == outside, "a graph as such may be anything"
    reaching = outside.replace(prob=graph.prob).save(tmp_path / "h.npz")
    assert read_graph(reaching).stimuli == 1


# One function for every file


def test_any_file_is_read_by_what_it_holds(tmp_path, ring, labels):
    expected = load_edges(ring, scale=False, seed=3)
    text = ring.read_bytes()
    (tmp_path / "a.tsv").write_bytes(text.replace(b",", b"\t"))
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(text))
    (tmp_path / "edges.txt").write_bytes(text)
    for name in ("ring.csv", "a.tsv", "b.csv.gz", "edges.txt"):
        assert read_graph(tmp_path / name, scale=False, seed=3) == expected
    nx.write_graphml(nx.DiGraph(RING), tmp_path / "c.graphml")
    (tmp_path / "d.graphml.gz").write_bytes(gzip.compress((tmp_path / "c.graphml").read_bytes()))
    for name in ("c.graphml", "d.graphml.gz"):
        assert read_graph(str(tmp_path / name), scale=False, seed=3) == expected
    saved = expected.save(tmp_path / "e.npz")
    assert read_graph(saved) == expected
    labelled = read_graph(ring, labels=labels, sensitive="area=north", scale=False)
    assert labelled.sensitive.sum() == 4 and "area" in labelled.labels


def test_options_that_a_file_does_not_take_are_named(tmp_path, ring):
    saved = load_edges(ring, scale=False).save(tmp_path / "e.npz")
    with pytest.raises(ValueError, match=r"e\.npz.*\['seed'\]"):
        read_graph(saved, seed=3)
    nx.write_graphml(nx.DiGraph(RING), tmp_path / "c.graphml")
    with pytest.raises(ValueError, match=r"c\.graphml.*\['labels', 'source'\]"):
        read_graph(tmp_path / "c.graphml", source="a", labels="b", seed=1)
    with pytest.raises(ValueError, match=r"ring\.csv.*\['speed'\]"):
        read_graph(ring, speed=3)
    with pytest.raises(ValueError, match=r"ring\.csv.*\['graph'\]"):
        read_graph(ring, graph=3)


def test_files_of_the_wrong_kind_are_named_with_what_loads_them(tmp_path, ring):
    saved = load_edges(ring, scale=False).save(tmp_path / "e.npz")
    nx.write_graphml(nx.DiGraph(RING), tmp_path / "c.graphml")
    for loader, path, other in (
        (load_edges, saved, "rapo.Graph.load"),
        (load_edges, tmp_path / "c.graphml", "rapo.load_graphml"),
        (load_graphml, ring, "rapo.load_edges"),
        (load_graphml, saved, "rapo.Graph.load"),
    ):
        with pytest.raises(ValueError, match=path.name) as caught:
            loader(path)
        assert other in str(caught.value)
    with pytest.raises(ValueError, match=r"e\.npz.*Graph\.load"):
        load_edges(ring, labels=saved)


@pytest.mark.parametrize("name", ["cut.npz", "cut.graphml", "cut.csv", "cut"])
def test_a_damaged_file_is_named_whatever_it_was(tmp_path, name):
    path = tmp_path / name
    for content in (b"", b"\x93\x00\x01\x02"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=name):
            read_graph(path)
    with pytest.raises(FileNotFoundError, match="none"):
        read_graph(tmp_path / "none.npz")


# Real networks


def test_email_with_a_department_as_sensitive_set():
    edges, labels = data("email_eu_core", "edges.csv.gz"), data("email_eu_core", "labels.csv.gz")
    with pytest.raises(ValueError, match=r"line 46: node 54 points to itself \(642 self-loops"):
        load_edges(edges)
    options = {"labels": labels, "sensitive": "department=14", "self_loops": "drop"}
    with pytest.raises(ValueError, match=r"got 4 parts of sizes \[89, 1, 1, 1\]"):
        load_edges(edges, scale=False, **options)
    graph = load_edges(edges, sensitive_part="largest", scale=False, **options)
    assert (graph.n, graph.edges, int(graph.sensitive.sum())) == (1005, 25_571 - 642, 89)
    assert graph.meta["self_loops_dropped"] == 642
    assert graph.meta["components"] == 20
    assert graph.meta["sensitive_left_out"] == 3


def test_congress_keeps_its_measured_probabilities():
    edges, nodes = (data("congress_twitter", f"{name}.csv.gz") for name in ("edges", "nodes"))
    graph = load_edges(edges, probability="weight", labels=nodes, sensitive="party=D")
    assert (graph.n, graph.edges, int(graph.sensitive.sum())) == (475, 13_289, 255)
    assert graph.prob.min() == pytest.approx(0.00053, abs=1e-5)
    assert graph.prob.max() == pytest.approx(0.1306, abs=1e-4)
    assert "scale" not in graph.meta


def test_wiki_vote_with_everything_drawn():
    graph = load_edges(data("wiki_vote", "edges.csv.gz"), scale=False)
    assert (graph.n, graph.edges) == (7115, 103_689)
    assert max(graph.meta["ids"]) == 8297
    assert 0.15 <= graph.sensitive.mean() <= 0.25


def test_topology_zoo_with_its_coordinates():
    with gzip.open(data("topology_zoo", "topologies.jsonl.gz"), "rt") as file:
        first = json.loads(file.readline())["data"]
    source = nx.node_link_graph(first, edges="edges")
    graph = from_networkx(source, positions="pos", scale=False)
    assert (graph.n, graph.edges) == (len(source), 2 * source.number_of_edges())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("latin.csv", "src,dst\nM\xfcller,2\n".encode("latin-1"), "cannot be read as UTF-8 text"),
        ("cut.csv.gz", b"\x1f\x8b\x08\x00", "cannot be read as gzipped UTF-8 text"),
        ("plain.csv.gz", b"src,dst\n1,2\n", "cannot be read as gzipped UTF-8 text"),
        ("nul.csv", b"src,dst\n1\x00,2\n", "holds a NUL byte"),
        ("snap.txt", b"# Nodes: 3\n1 2\n", "separated by commas or tabs, comments are not allowed"),
    ],
)
def test_a_file_that_is_no_table_is_named(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_edges(path)
    assert name in str(caught.value)


def test_other_wrong_inputs_are_named(tmp_path):
    path = tmp_path / "broken.graphml"
    path.write_text("<graphml><graph>")
    with pytest.raises(ValueError, match=r"broken.graphml is not a GraphML file"):
        load_graphml(path)
    with pytest.raises(ValueError, match="graph must be a networkx graph, got dict"):
        from_networkx({})
    ring = nx.cycle_graph(30)
    for options, message in (
        ({"sensitive": 3}, "sensitive must be 'column=value'"),
        ({"stimuli": 1.5}, "stimuli must be a whole number >= 1, got 1.5"),
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
        ({"scale": "yes"}, "scale must be True or False, got 'yes'"),
        ({"setting": {}}, "setting must be a Setting"),
    ):
        with pytest.raises(ValueError, match=message):
            from_networkx(ring, **options)
