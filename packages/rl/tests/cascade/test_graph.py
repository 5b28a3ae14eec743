"""`Graph`: content, equality, files, immutability and everything that is refused."""

import dataclasses
import gzip
import io
import json
import pickle
import re
import zipfile
from copy import deepcopy

import networkx as nx
import numpy as np
import pytest
from repository import ROOT

from rapo.cascade.graph import Graph
from rapo.graphs.generate import generate

FIXTURES = ROOT / "tests" / "fixtures"

ARRAYS = ("indptr", "indices", "prob", "positions", "sensitive", "support", "weights")
#   0 -> 1 -> 2 -> 0, 2 -> 3; nodes 1 and 2 are sensitive
TINY = {
    "indptr": [0, 1, 2, 4, 4],
    "indices": [1, 2, 0, 3],
    "prob": [0.5, 0.25, 0.125, 1.0],
    "positions": [[0, 0], [1, 0], [1, 1], [0, 1]],
    "sensitive": [False, True, True, False],
    "support": [[0, 1], [1, 3]],
    "weights": [[0.5, 0.5], [0.25, 0.75]],
}
CHANGED = {
    "indptr": [0, 1, 2, 3, 4],  # of `rooted`: the last edge starts at 3 instead of 2
    "indices": [1, 2, 1, 3],
    "prob": [0.5, 0.25, 0.125, np.nextafter(np.float32(1), np.float32(0))],
    "positions": [[0, 0], [1, 0], [1, 1], [0.5, 1]],
    "sensitive": [True, True, True, False],
    "support": [[0, 1], [2, 3]],
    "weights": [[0.5, 0.5], [0.75, 0.25]],
}


def tiny(**changes):
    return Graph(**{**TINY, **changes})


def rooted(**changes):
    """The tiny graph with 2 -> 1 for 2 -> 3, so that its indptr alone can change."""
    return tiny(**{"indices": [1, 2, 0, 1], **changes})


def base_of(name):
    return rooted() if name == "indptr" else tiny()


# --- content -------------------------------------------------------------------------------


def test_a_tiny_graph_by_hand():
    g = tiny(meta={"from": "hand"})
    assert (g.n, g.edges, g.stimuli) == (4, 4, 2)
    assert g.sources.tolist() == [0, 1, 2, 2]
    expected = np.zeros((4, 4))
    expected[[0, 1, 2, 2], [1, 2, 0, 3]] = [0.5, 0.25, 0.125, 1.0]
    np.testing.assert_array_equal(g.adjacency.toarray(), expected)
    np.testing.assert_array_equal(g.neighbours.toarray(), (expected + expected.T) > 0)
    indptr, sources, prob = g.incoming
    assert indptr.tolist() == [0, 1, 2, 3, 4]
    assert sources.tolist() == [2, 0, 1, 2]
    assert prob.tolist() == [0.125, 0.5, 0.25, 1.0]
    dtypes = [getattr(g, name).dtype for name in ARRAYS]
    assert dtypes == ["i4", "i4", "f4", "f4", "?", "i4", "f8"]
    assert g.meta == {"from": "hand"}
    assert repr(g) == f"Graph(4 nodes, 4 edges, |V_sens| = 2, 2 stimuli, {g.hash})"


def test_in_edges_are_the_out_edges_sorted_by_target():
    g = generate(60, 3, scale=0.5)
    indptr, sources, prob = g.incoming
    seen = set()
    for v in range(g.n):
        rows = slice(indptr[v], indptr[v + 1])
        assert np.all(np.diff(sources[rows]) > 0)
        seen |= {(int(u), v, float(p)) for u, p in zip(sources[rows], prob[rows], strict=True)}
    assert seen == set(zip(g.sources.tolist(), g.indices.tolist(), g.prob.tolist(), strict=True))


def test_a_graph_without_edges_is_a_graph():
    g = tiny(indptr=[0] * 5, indices=[], prob=[], sensitive=[True, False, False, False])
    assert g.edges == 0
    assert g.incoming[0].tolist() == [0] * 5


# --- hash and equality ---------------------------------------------------------------------


def test_the_hash_is_the_same_on_every_machine():
    assert tiny().hash == "ac87e9a361fdf065"


def test_the_hash_takes_the_content_not_how_it_was_given():
    as_arrays = Graph(
        **{name: np.asarray(value, order="F") for name, value in TINY.items()}, meta={"a": 1}
    )
    assert as_arrays.hash == tiny().hash
    assert as_arrays == tiny()
    assert hash(as_arrays) == hash(tiny())
    assert {as_arrays, tiny()} == {tiny()}


@pytest.mark.parametrize("name", ARRAYS)
def test_the_hash_feels_every_array(name):
    base = base_of(name)
    other = base.replace(**{name: CHANGED[name]})
    assert other.hash != base.hash
    assert other != base


def test_a_graph_equals_no_other_thing():
    assert tiny() != tiny().hash
    assert tiny() != None  # noqa: E711  # the operator itself is under test


# --- immutability --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_read_only_copies(name):
    given = np.array(TINY[name])
    g = tiny(**{name: given})
    with pytest.raises(ValueError, match="read-only"):
        getattr(g, name)[...] = 0
    given[...] = 0
    np.testing.assert_array_equal(getattr(g, name), TINY[name])
    assert given.flags.writeable


def test_fields_cannot_be_replaced():
    with pytest.raises(dataclasses.FrozenInstanceError):
        tiny().prob = np.zeros(4)


@pytest.mark.parametrize("name", ["sources", "incoming", "adjacency", "neighbours"])
def test_derived_arrays_are_read_only_too(name):
    """They are cached: writing to one would change the graph behind its hash."""
    value = getattr(tiny(), name)
    if name == "incoming":
        arrays = value
    elif name == "sources":
        arrays = (value,)
    else:
        arrays = (value.data, value.indices, value.indptr)
    assert not any(array.flags.writeable for array in arrays)


def test_meta_does_not_follow_the_callers_dict():
    meta = {"seed": 1}
    g = tiny(meta=meta)
    meta["seed"] = 2
    assert g.meta == {"seed": 1}


def test_replace_makes_a_checked_copy():
    g = tiny(meta={"a": 1})
    other = g.replace(prob=[0, 0, 0, 0])
    assert other.prob.tolist() == [0] * 4
    assert g.prob.tolist() == TINY["prob"]
    assert other.meta == {"a": 1}
    assert g.replace() == g
    with pytest.raises(ValueError, match=r"probabilities must be in \[0, 1\], got 2.0"):
        g.replace(prob=[0, 0, 0, 2])
    with pytest.raises(TypeError, match="nodes"):
        g.replace(nodes=3)


# --- refused content -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": [1, 1, 2, 4, 4]}, "rise from 0 to the number of edges (4), got [1 1 2 4 4]"),
        ({"indptr": [0, 1, 2, 3, 3]}, "rise from 0 to the number of edges (4), got [0 1 2 3 3]"),
        ({"indptr": [0, 2, 1, 4, 4]}, "rise from 0 to the number of edges (4), got [0 2 1 4 4]"),
        ({"indptr": [0]}, "rise from 0"),
        ({"indptr": []}, "rise from 0"),
        ({"prob": [0.5, 0.5, 0.5]}, "prob must have shape (4,), got (3,)"),
        ({"positions": [[0, 0]] * 3}, "positions must have shape (4, 2), got (3, 2)"),
        ({"positions": [[0, 0, 0]] * 4}, "positions must have shape (4, 2), got (4, 3)"),
        ({"sensitive": [True]}, "sensitive must have shape (4,), got (1,)"),
        ({"indices": [1, 2, 0, 4]}, "edge targets must be nodes 0..3, got 4"),
        ({"indices": [1, 2, -1, 3]}, "edge targets must be nodes 0..3, got -1"),
        (
            {"prob": [0.5, 1.5, 0.5, 0.5]},
            "must be in [0, 1], got 1.5 on edge 1 -> 2; rescale or correct",
        ),
        ({"prob": [0.5, 0.5, -0.5, 0.5]}, "must be in [0, 1], got -0.5 on edge 2 -> 0"),
        ({"prob": [0.5, 0.5, 0.5, np.nan]}, "must be in [0, 1], got nan on edge 2 -> 3"),
        ({"indices": [1, 1, 0, 3]}, "self-loop at node 1; drop self-loops first"),
        ({"indices": [1, 2, 3, 0]}, "sorted and unique; check 2 -> 3 and 2 -> 0"),
        ({"indices": [1, 2, 3, 3]}, "sorted and unique; check 2 -> 3 and 2 -> 3"),
        (
            {"positions": [[0, 0], [1, 0], [1, 1.5], [0, 1]]},
            "positions must lie in the unit square, node 2 is at [1.  1.5]; rescale them",
        ),
        ({"positions": [[0, 0], [np.nan, 0], [1, 1], [0, 1]]}, "unit square, node 1 is at"),
        ({"positions": [[-0.5, 0], [1, 0], [1, 1], [0, 1]]}, "unit square, node 0 is at"),
        ({"sensitive": [False] * 4}, "the sensitive set is empty; name at least one node"),
        (
            {"sensitive": [True, False, False, True]},
            "the sensitive set must be connected, got 2 parts of sizes [1, 1]; use its largest",
        ),
        (
            {"support": [[0, 1, 2], [0, 1, 3]]},
            "support and weights must share a shape (stimuli, nodes), got (2, 3) and (2, 2)",
        ),
        ({"support": [[]], "weights": [[]]}, "must share a shape (stimuli, nodes)"),
        (
            {"support": [0, 1], "weights": [0.5, 0.5]},
            "support must be a 2-D array of int32, got int64 of shape (2,)",
        ),
        ({"prob": np.full(4, 0.1 + 1j)}, "prob must be a 1-D array of float32, got complex128"),
        ({"sensitive": np.full(4, np.nan)}, "sensitive must be a 1-D array of bool, got float64"),
        ({"meta": None}, "meta must be a mapping of JSON values, got None"),
        ({"support": [[0, 1], [1, 4]]}, "stimulus seeds must be nodes 0..3, got 4"),
        ({"support": [[-1, 1], [1, 3]]}, "stimulus seeds must be nodes 0..3, got -1"),
        ({"support": [[0, 1], [3, 1]]}, "seeds of stimulus 2 must be ascending and distinct"),
        ({"support": [[1, 1], [1, 3]]}, "seeds of stimulus 1 must be ascending and distinct"),
        ({"weights": [[0.5, 0.5], [0.5, 0.25]]}, "stimulus must be >= 0 and sum to 1"),
        ({"weights": [[0.5, 0.5], [1.5, -0.5]]}, "stimulus must be >= 0 and sum to 1"),
        ({"weights": [[0.5, np.nan], [0.5, 0.5]]}, "stimulus must be >= 0 and sum to 1"),
    ],
)
def test_bad_content_is_refused_by_name_and_value(changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        tiny(**changes)


def test_seed_weights_that_miss_one_by_more_than_rounding_are_refused():
    tiny(weights=[[0.5, 0.5], [0.25, 0.75 + 1e-12]])
    with pytest.raises(ValueError, match="sum to 1"):
        tiny(weights=[[0.5, 0.5], [0.25, 0.75 + 5e-6]])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("indices", np.array([1, 2, 0, 3]) + 2**32),  # the same numbers modulo 2^32
        ("indices", [1.5, 2, 0, 3]),
        ("indptr", [0, 1.5, 2, 4, 4]),
        ("support", [[0.5, 1], [1, 3]]),
        ("support", np.array([[0, 1], [1, 3]]) + 2**32),
    ],
)
def test_numbers_that_are_no_node_ids_are_not_rounded_or_wrapped(name, values):
    with pytest.raises((ValueError, OverflowError)):
        tiny(**{name: values})


def test_a_sensitive_set_may_be_connected_against_the_direction_of_edges():
    assert tiny(sensitive=[True, False, True, False]).sensitive.sum() == 2  # only 2 -> 0 joins them


def test_the_parts_of_a_split_sensitive_set_are_listed_by_size():
    """A path of seven nodes with 0, 1, 2 and 4 and 6 sensitive."""
    path = {
        "indptr": [0, 1, 2, 3, 4, 5, 6, 6],
        "indices": [1, 2, 3, 4, 5, 6],
        "prob": [0.5] * 6,
        "positions": [[i / 6, 0] for i in range(7)],
        "support": [[0, 1]],
        "weights": [[0.5, 0.5]],
    }
    with pytest.raises(ValueError, match=r"got 3 parts of sizes \[3, 1, 1\]"):
        Graph(**path, sensitive=[True, True, True, False, True, False, True])


# --- files ---------------------------------------------------------------------------------


def test_a_file_gives_the_graph_back(tmp_path):
    g = generate(40, 1, scale=0.5)
    path = g.save(tmp_path / "graph.npz")
    assert path == tmp_path / "graph.npz"
    back = Graph.load(str(path))
    assert back == g
    assert back.meta == g.meta
    for name in ARRAYS:
        one, two = getattr(g, name), getattr(back, name)
        np.testing.assert_array_equal(one, two)
        assert one.dtype == two.dtype
        assert not two.flags.writeable


def test_an_existing_file_is_kept(tmp_path):
    path = tiny().save(tmp_path / "graph.npz")
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match=r"graph.npz exists; choose another"):
        tiny(prob=[0] * 4).save(path)
    assert path.read_bytes() == before


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"saved as .npz, got 'graph.json'; name it \*.npz"):
        tiny().save(tmp_path / "graph.json")
    assert not list(tmp_path.iterdir())


def test_meta_that_cannot_be_written_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="meta must be a mapping of JSON values"):
        tiny(meta={"a": np.zeros(2)}).save(tmp_path / "graph.npz")
    assert not list(tmp_path.iterdir())


def test_copies_are_as_immutable_as_the_graph():
    graph = tiny()
    for copy in (pickle.loads(pickle.dumps(graph)), deepcopy(graph)):
        assert copy == graph and copy.hash == graph.hash
        with pytest.raises(ValueError, match="read-only"):
            copy.prob[0] = 0.9
    with pytest.raises(TypeError):
        graph.meta["x"] = 1


def rewrite(path, **changes):
    """The same file with some entries changed; None leaves one out."""
    with np.load(path) as data:
        entries = {**{name: data[name] for name in data.files}, **changes}
    np.savez(path, **{name: value for name, value in entries.items() if value is not None})


@pytest.mark.parametrize("name", ARRAYS)
def test_a_file_with_a_changed_array_is_refused(tmp_path, name):
    base = base_of(name)
    path = base.save(tmp_path / "graph.npz")
    rewrite(path, **{name: np.array(CHANGED[name])})
    with pytest.raises(ValueError, match=rf"graph.npz is damaged: hash .*{base.hash}"):
        Graph.load(path)


@pytest.mark.parametrize("name", ["header", *ARRAYS])
def test_a_file_with_a_missing_entry_is_refused(tmp_path, name):
    path = tiny().save(tmp_path / "graph.npz")
    rewrite(path, **{name: None})
    with pytest.raises(ValueError, match=rf"graph.npz is not a rapo graph: \['{name}'\] missing"):
        Graph.load(path)


def test_another_format_is_refused_by_number(tmp_path):
    path = tiny().save(tmp_path / "graph.npz")
    rewrite(path, header=np.array(json.dumps({"format": 99, "hash": "", "meta": {}})))
    with pytest.raises(ValueError, match=r"graph.npz has graph format 99, this version reads 1"):
        Graph.load(path)


def test_bad_content_in_a_file_is_refused(tmp_path):
    path = tiny().save(tmp_path / "graph.npz")
    rewrite(path, prob=np.array([2.0, 0, 0, 0]))
    with pytest.raises(ValueError, match=r"probabilities must be in \[0, 1\], got 2.0"):
        Graph.load(path)


@pytest.mark.parametrize("kind", ["cut", "flipped", "text", "array", "empty", "header"])
def test_a_broken_or_foreign_file_is_refused_by_its_name(tmp_path, kind):
    path = tiny().save(tmp_path / "graph.npz")
    content = path.read_bytes()
    if kind == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif kind == "flipped":
        with zipfile.ZipFile(path) as archive:
            inside = archive.getinfo("prob.npy").header_offset + 60
        path.write_bytes(content[:inside] + bytes([content[inside] ^ 0xFF]) + content[inside + 1 :])
    elif kind == "text":
        path.write_text("src,dst\n0,1\n")
    elif kind == "array":
        buffer = io.BytesIO()
        np.save(buffer, np.zeros(3))
        path.write_bytes(buffer.getvalue())
    elif kind == "empty":
        path.write_bytes(b"")
    else:
        rewrite(path, header=np.array("{}"))
    with pytest.raises(ValueError, match=r"graph\.npz"):
        Graph.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        Graph.load(tmp_path / "none.npz")


def test_no_pickle_is_ever_loaded(tmp_path):
    path = tiny().save(tmp_path / "graph.npz")
    rewrite(path, prob=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match=r"allow_pickle|graph\.npz"):
        Graph.load(path)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "graphml"])
def test_a_file_of_another_kind_is_named_with_what_loads_it(tmp_path, suffix):
    path = tmp_path / f"net.{suffix}"
    if suffix == "graphml":
        nx.write_graphml(nx.path_graph(3), path)
    else:
        text = b"src,dst\n0,1\n"
        path.write_bytes(gzip.compress(text) if suffix == "csv.gz" else text)
    loader = "load_graphml" if suffix == "graphml" else "load_edges"
    with pytest.raises(ValueError, match=rf"net\.{suffix}.*rapo\.{loader}") as caught:
        Graph.load(path)
    assert "pickle" not in str(caught.value)
    assert f"rapo graph net.{suffix} --out" in str(caught.value)


# --- labels --------------------------------------------------------------------------------

LABELS = {"party": ("D", "R", None, "D"), "name": ("a", "b, c", "ü", "")}


def test_labels_are_kept_and_not_part_of_the_content():
    given = {"party": ["D", "R", None, "D"], "name": np.array(["a", "b, c", "ü", ""])}
    g = tiny(labels=given)
    assert g.labels == LABELS
    assert tiny().labels == {}
    assert g == tiny() and g.hash == tiny().hash
    given["party"][0] = "X"
    assert g.labels["party"][0] == "D"
    with pytest.raises(TypeError):
        g.labels["party"] = ()
    assert "party" in repr(g) and "labels" not in repr(tiny())


def test_labels_follow_copies():
    g = tiny(labels=LABELS)
    others = (
        pickle.loads(pickle.dumps(g)),
        deepcopy(g),
        g.replace(),
        g.replace(prob=[0, 0, 0, 0]),
        g.replace(meta={"a": 1}),
        g.replace(prob=[0, 0, 0, 0], meta={"a": 1}),
    )
    for other in others:
        assert other.labels == LABELS
    assert g.replace(labels={}).labels == {}
    assert g.replace(labels={"x": ("1",) * 4}).labels == {"x": ("1",) * 4}


def test_equal_values_of_a_label_are_one_object():
    """A column costs a reference per node, not a string."""
    values = ["".join(("north", "-", "west")) for _ in range(4)]
    assert len({id(value) for value in values}) == 4
    assert len({id(value) for value in tiny(labels={"area": values}).labels["area"]}) == 1


@pytest.mark.parametrize(
    "labels",
    [
        {"a": ("x", "y")},
        {"a": "abcd"},
        {"a": 3},
        {"a": (1, 2, 3, 4)},
        {"a": ("x", "y", "z", float("nan"))},
        {3: ("x",) * 4},
        [("x",) * 4],
        None,
    ],
)
def test_labels_that_are_no_text_per_node_are_refused(labels):
    with pytest.raises(ValueError, match="label"):
        tiny(labels=labels)


def test_labels_are_saved_and_loaded(tmp_path):
    path = tiny(labels=LABELS, meta={"a": 1}).save(tmp_path / "g.npz")
    back = Graph.load(path)
    assert back.labels == LABELS
    assert back.meta == {"a": 1}
    plain = tiny(meta={"a": 1}).save(tmp_path / "plain.npz")
    assert Graph.load(plain).labels == {}


def test_damaged_labels_are_refused_by_the_name_of_the_file(tmp_path):
    path = tiny(labels=LABELS).save(tmp_path / "g.npz")
    rewrite(path, labels=np.frombuffer(b'{"party": {"values": ["D"], "of": [0, 7]}}', np.uint8))
    with pytest.raises(ValueError, match=r"g\.npz"):
        Graph.load(path)


# --- other probabilities on the same wiring ------------------------------------------------


def test_other_probabilities_share_the_wiring_and_nothing_that_depends_on_them():
    g = generate(60, 3, scale=0.5)
    for name in ("sources", "neighbours", "incoming", "adjacency", "hash"):
        getattr(g, name)  # all that is derived is there to be carried over by mistake
    prob = g.prob[::-1].copy()
    quick = g.replace(prob=prob)
    whole = g.replace(prob=prob, meta=dict(g.meta))
    assert quick.hash == whole.hash != g.hash
    assert quick.neighbours is g.neighbours
    np.testing.assert_array_equal(quick.adjacency.toarray(), whole.adjacency.toarray())
    for one, two in zip(quick.incoming, whole.incoming, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not quick.prob.flags.writeable
    prob[:] = 0
    assert quick == whole


@pytest.mark.parametrize("bad", [[0.5] * 3, [0.5, 0.5, 0.5, 1.5], [0, 0, 0, np.nan], ["a"] * 4])
def test_other_probabilities_are_checked(bad):
    with pytest.raises(ValueError, match=r"prob"):
        tiny().replace(prob=bad)
