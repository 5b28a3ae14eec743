"""Tables of edges and labels: spellings of a file, and faults by line."""

import gzip

import numpy as np
import pytest

from rapo.cascade.edges import NodeTable, file_kind, read_edges, read_labels, sort_keys
from rapo.graphs.load import load_edges

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # graphs of three nodes and such
ROWS = [(i, (i + 1) % 12) for i in range(12)] + [(i, (i + 3) % 12) for i in range(12)]


def write(path, rows, header="src,dst"):
    text = "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def ring(tmp_path):
    return write(tmp_path / "ring.csv", ROWS)


def edge_dict(graph):
    return dict(zip(zip(graph.sources, graph.indices, strict=True), graph.prob, strict=True))


@pytest.mark.parametrize("kind", ["csv.gz", "tsv", "bom", "blank lines", "quotes", "old mac"])
def test_other_spellings_of_the_same_file(ring, tmp_path, kind):
    text = ring.read_text()
    if kind == "csv.gz":
        path = tmp_path / "ring.csv.gz"
        path.write_bytes(gzip.compress(text.encode()))
    elif kind == "tsv":
        path = tmp_path / "ring.tsv"
        path.write_text(text.replace(",", "\t"))
    elif kind == "bom":
        path = tmp_path / "bom.csv"
        path.write_text(text, encoding="utf-8-sig")
    elif kind == "quotes":
        path = tmp_path / "quotes.csv"
        lines = text.splitlines()
        quoted = ['"' + line.replace(",", '" ,"') + '"' for line in lines[1::2]]
        path.write_text("\n".join([lines[0], *quoted, *lines[2::2]]))
    elif kind == "old mac":
        path = tmp_path / "mac.csv"
        path.write_bytes(text.replace("\n", "\r").encode())
    else:
        path = tmp_path / "blank.csv"
        path.write_text(text.replace("\n", "\r\n\r\n"))
    assert load_edges(path, scale=False) == load_edges(ring, scale=False)


def test_sparse_numbers_sort_as_numbers_and_text_as_text(tmp_path):
    numbers = write(tmp_path / "a.csv", [(900, 10), (10, 2), (2, 900)])
    assert load_edges(numbers, scale=False).meta["ids"] == [2, 10, 900]
    words = write(tmp_path / "b.csv", [("bo", "al"), ("al", "10"), ("10", "2")])
    assert load_edges(words, scale=False).meta["ids"] == ["10", "2", "al", "bo"]
    padded = write(tmp_path / "c.csv", [("7", "07"), ("07", "8")])
    assert load_edges(padded, scale=False).meta["ids"] == ["07", "7", "8"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"bad.csv has no header row; put column names on line 1"),
        ("0,1\n1,2\n", r"no column 'src', its header is \['0', '1'\]; name the right column"),
        ("src,dst,src\n", r"repeats a column name in \['src', 'dst', 'src'\]; rename"),
        ("src,dst\n0,1\n\n1\n", r"line 4 has 1 fields, the header has 2; correct that line"),
        ("src,dst\n0,1\n1,\n", r"line 3: the node id is empty; every row needs one"),
        ("src,dst\n", r"bad.csv holds no edge between two nodes"),
        ("src,dst\n0,1\n2,2\n", r"line 3: node 2 points to itself .*self_loops='drop'"),
        (
            "src,dst\n0,1\n1,0\n\n0,1\n",
            r"line 5 repeats bad.csv, line 2 \(1 duplicates in all\); pass duplicates='drop'",
        ),
    ],
)
def test_a_bad_file_is_refused_by_line(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_edges(path)


def test_dropped_lines_are_counted_and_the_first_repeat_is_kept(tmp_path):
    rows = [(0, 1, 0.1), (1, 1, 0.2), (0, 1, 0.3), (1, 0, 0.4), (0, 1, 0.5), (3, 3, 0.5)]
    path = write(tmp_path / "d.csv", rows, "src,dst,p")
    drop = {"self_loops": "drop", "duplicates": "drop", "probability": "p", "sensitive": [0, 1]}
    graph = load_edges(path, **drop)
    assert edge_dict(graph) == {(0, 1): np.float32(0.1), (1, 0): np.float32(0.4)}
    assert graph.meta["self_loops_dropped"] == 2
    assert graph.meta["duplicates_dropped"] == 2
    assert graph.meta["ids"] == [0, 1, 3]
    assert graph.meta["components"] == 2
    both_ways = load_edges(path, directed=False, **drop)
    assert set(edge_dict(both_ways).values()) == {np.float32(0.1)}
    assert both_ways.meta["duplicates_dropped"] == 3


@pytest.mark.parametrize("bad", ["1.5", "-0.1", "nan", "inf", "", "high"])
def test_a_bad_probability_is_refused_by_line(tmp_path, bad):
    path = write(tmp_path / "p.csv", [(0, 1, 0.5), (1, 2, bad)], "src,dst,p")
    with pytest.raises(ValueError, match=rf"p.csv, line 3: .*in \[0, 1\], got '{bad}'; rescale"):
        load_edges(path, probability="p")


def test_keys_are_distinct_and_sorted():
    assert sort_keys(["10", "-3", "9", "10"]) == (["-3", "9", "10"], True)
    assert sort_keys(["10", "9", "b"]) == (["10", "9", "b"], False)
    assert sort_keys(["-0", "1"]) == (["-0", "1"], False)


def test_labels_are_read_by_column(tmp_path):
    table = read_labels(write(tmp_path / "l.csv", [(3, "a", 1), (1, "b", 2)], "node,kind,size"))
    assert table.keys == ["3", "1"]
    assert table.column("kind") == {"3": "a", "1": "b"}
    assert NodeTable().keys == []
    with pytest.raises(ValueError, match=r"called 'age', there are \['kind', 'size'\]; choose one"):
        table.column("age")


def test_quotes_change_neither_cells_nor_lines(tmp_path):
    plain = write(tmp_path / "p.csv", [(1, 2, " x "), (3, 4, ""), (5, 6, "y z")], "a,b,c")
    table = read_edges(plain, "a", "b", None, True)
    assert table.sources == ["1", "3", "5"] and table.targets == ["2", "4", "6"]
    assert list(table.lines) == [2, 3, 4]
    quoted = tmp_path / "q.csv"
    quoted.write_text('a,b,c\n"1",2,"x, and\nmore"\n\n3,"4",""\n5,6,y z\n')
    again = read_edges(quoted, "a", "b", None, True)
    assert (again.sources, again.targets) == (table.sources, table.targets)
    assert list(again.lines) == [3, 5, 6], "a cell may hold a line end"


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_fault_has_its_line_with_and_without_quotes(tmp_path, quote):
    path = tmp_path / "bad.csv"
    path.write_text(f"src,dst\n{quote}0{quote},1\n\n1,2\n2,3,4\n,5\n")
    with pytest.raises(ValueError, match=r"bad\.csv, line 5 has 3 fields"):
        load_edges(path)
    path.write_text(f"src,dst\n{quote}0{quote},1\n\n1,2\n7,\n,5\n")
    with pytest.raises(ValueError, match=r"bad\.csv, line 5: the node id is empty"):
        load_edges(path)


@pytest.mark.parametrize("text", ["src,dst", "src,dst\n", "src,dst\n\n\n", "node,area\r\n"])
def test_a_table_without_rows_is_read_as_such(tmp_path, text):
    path = tmp_path / "empty.csv"
    path.write_bytes(text.encode())
    assert read_labels(path).keys == []


def test_a_broken_quote_is_a_broken_table(tmp_path):
    path = tmp_path / "open.csv"
    path.write_text('src,dst\n"' + "x" * 200_000 + ",1\n")
    with pytest.raises(ValueError, match=r"open\.csv"):
        load_edges(path)


def test_texts_of_nodes_in_order_and_none_for_what_is_missing():
    table = NodeTable(["a", "b"], {"kind": {"a": " x ", "b": ""}, "size": {"b": 3, "c": None}})
    assert table.texts(["c", "b", "a"]) == {"kind": (None, None, "x"), "size": (None, "3", None)}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"src,dst\n1,2\n", "table"),
        (b"\xef\xbb\xbfsrc\tdst\n", "table"),
        (b"<?xml version='1.0'?>\n<graphml>", "graphml"),
        (b"<html><body>", None),
        (b"PK\x03\x04" + bytes(26) + b"header.npy", "npz"),
        (b"PK\x03\x04" + bytes(26) + b"word/document.xml", None),
        (b"# Nodes: 3\n1 2\n", None),
        (b"1,\x00\n", None),
        (b"", None),
    ],
)
def test_the_kind_of_a_file_is_told_by_its_content(tmp_path, content, kind):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert file_kind(path) == kind
    path.write_bytes(gzip.compress(content))
    assert file_kind(str(path)) == kind
    path.write_bytes(gzip.compress(content)[:12])
    assert file_kind(path) is None
