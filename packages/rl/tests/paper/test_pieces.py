"""Pieces on disk: what comes back, how small they are, and how damage is told."""

import json
import sys

import numpy as np
import pytest

from rapo.agents.run_config import graph_run
from rapo.paper import pieces
from rapo.paper.piece_folder import existing, pack, packed, read_content
from rapo.paper.piece_reader import read_piece
from rapo.paper.pieces import read_rows, rounded, write_piece, write_rows
from rapo.paper.task import Alone
from rapo.paper.tasks import Evaluate, Train

TASK = Evaluate(Train(graph_run(method="GE", nodes=40)), "GE", episodes=20)


def content(seed=0):
    """As long as the paper's: 60 columns of 20 episodes, 14 curves of 120 bins."""
    rng = np.random.default_rng(seed)
    named = ("RAG", "AUC_R", "SM_R", "ReplayReturn", "OddsRatio")
    episodes = {"episode": np.arange(20), "seed": 2**40 + np.arange(20)}
    episodes |= {name: rng.gamma(2.0, size=20) for name in named}
    episodes |= {f"more{i}": rng.normal(size=20) for i in range(50)}
    curves = {f"curve{i}": np.cumsum(rng.normal(size=120)) for i in range(14)}
    return {"key": TASK.key, "seconds": 1.5, "training": {"steps": 7}, "shield": None,
            "words": 'äöü "x" \n', "episodes": episodes, "curves": curves}  # fmt: skip


def test_what_is_written_comes_back(tmp_path):
    told = content()
    told["curves"]["gaps"] = [None, 1.0, np.nan, 2.5e-7]
    path = tmp_path / "pieces" / "a.b-0.5.parquet"
    write_piece(path, told)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    found = read_content(path)
    assert {k: v for k, v in found.items() if k not in pieces.PARTS} == {
        k: v for k, v in told.items() if k not in pieces.PARTS
    }
    assert found["episodes"]["seed"] == (2**40 + np.arange(20)).tolist()  # whole numbers exactly
    for name in ("RAG", "more3"):
        expected = [float(f"{v:.6g}") for v in told["episodes"][name]]
        assert found["episodes"][name] == expected
    assert np.allclose(found["curves"]["curve3"], told["curves"]["curve3"], rtol=5e-5, atol=0)
    gaps = found["curves"]["gaps"]
    assert np.isnan(gaps[0]) and np.isnan(gaps[2]) and gaps[3] == pytest.approx(2.5e-7, rel=5e-5)
    assert list(found["episodes"]) == list(told["episodes"])


def test_a_piece_is_small(tmp_path):
    """Against its JSON with as many digits, of numbers that are all chance."""
    path = tmp_path / "a.parquet"
    write_piece(path, content())
    assert path.stat().st_size < 0.4 * len(json.dumps(read_content(path)))


def test_six_digits_are_those_that_are_printed():
    rng = np.random.default_rng(1)
    values = rng.normal(size=2000) * 10.0 ** rng.integers(-9, 12, 2000)
    assert rounded(values, 6).tolist() == [float(f"{v:.6g}") for v in values]


def test_pieces_of_version_0_1_are_read(tmp_path):
    told = {
        **content(),
        "episodes": {k: v.tolist() for k, v in content()["episodes"].items()},
        "curves": {},
    }
    path = TASK.piece(tmp_path)
    path.parent.mkdir()
    path.with_suffix(".json").write_text(json.dumps(told))
    assert TASK.done(tmp_path) and existing(path) == path.with_suffix(".json")
    old = read_piece(TASK, tmp_path).frame
    assert len(old) == 20
    told["episodes"]["RAG"] = [0.5] * 20
    write_piece(path, told)  # the present format comes first
    assert (read_piece(TASK, tmp_path).frame["RAG"] == 0.5).all() and not (old["RAG"] == 0.5).all()


def other_table(path):
    from pyarrow import parquet, table

    parquet.write_table(table({"a": [1, 2]}), path)


def no_metadata(path):
    from pyarrow import parquet

    parquet.write_table(parquet.read_table(path).replace_schema_metadata(None), path)


def fewer(path):
    told = read_content(path)
    told["episodes"] = {name: column[:-1] for name, column in told["episodes"].items()}
    write_piece(path, told)


def lacking(path):
    told = read_content(path)
    del told["episodes"]["SM_R"]
    write_piece(path, told)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-30]),
        lambda path: path.write_bytes(path.read_bytes()[:100]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"PAR1" * 50),
        lambda path: path.write_bytes(b"x".join(path.read_bytes()[i : i + 99] for i in (0, 100))),
        lambda path: path.write_text("{}"),
        other_table, no_metadata, fewer, lacking,
    ],
)  # fmt: skip
def test_damage_is_named_with_the_remedy(tmp_path, damage):
    path = TASK.piece(tmp_path)
    write_piece(path, content())
    damage(path)
    with pytest.raises(ValueError, match="is damaged") as caught:
        read_piece(TASK, tmp_path)
    assert str(path) in str(caught.value) and "remove it and run again" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_pyarrow_the_remedy_is_told_and_nothing_is_called_damaged(tmp_path, monkeypatch):
    write_piece(TASK.piece(tmp_path), content())
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    for call in (
        lambda: write_piece(tmp_path / "new.parquet", content()),
        lambda: read_piece(TASK, tmp_path),
    ):
        with pytest.raises(ValueError, match=r"rapo-rl\[studies\]") as caught:
            call()
        assert "damaged" not in str(caught.value)
    assert not (tmp_path / "new.parquet").exists()


ROWS = {
    "key": "a-1",
    "seconds": 1.5,
    "fit": {"tau": 0.1, "spec": None},
    "rows": [
        {"policy": "x", "means": {"RAG": 1 / 3, "R_c": None}, "n": 2**53 + 1, "heavy": True},
        {"policy": "y", "means": {"RAG": 1e-300, "R_c": 2.0}, "n": 3, "heavy": False},
    ],
}


class One(Alone):
    key = "a-1"


# Packed pieces


def evaluation(graph_seed):
    return Evaluate(Train(graph_run(method="GE", nodes=40, graph_seed=graph_seed)), "GE")


def plain(content):
    """What compares: not-a-number equals itself as text."""
    return json.dumps(content)


@pytest.fixture
def folder(tmp_path):
    """Two pieces, one of version 0.1 with a gap, and one of rows."""
    for seed in (0, 1):
        told = content(seed)
        told["curves"]["gaps"] = [None, 1.0, np.nan, 2.5e-7]
        told["training"] = {"steps": seed}
        write_piece(evaluation(seed).piece(tmp_path), told | {"key": evaluation(seed).key})
    old = json.dumps(content(2) | {"key": "local-0.5-old"}, default=np.ndarray.tolist)
    old = json.loads(old)
    old["episodes"]["R_c"] = [None, *range(19)]
    (tmp_path / "pieces" / "local-0.5-old.json").write_text(json.dumps(old))
    write_rows(One().piece(tmp_path), ROWS)
    return tmp_path


def test_packed_pieces_are_read_as_before_from_one_file(folder):
    keys = (evaluation(0).key, evaluation(1).key, "local-0.5-old")
    paths = [folder / "pieces" / f"{key}.parquet" for key in keys]
    before = [plain(read_content(path)) for path in paths[:2]]
    assert pack(folder) == (3, 3)
    names = {"packed.parquet", "a-1.parquet"}
    assert {path.name for path in (folder / "pieces").iterdir()} == names
    assert [plain(read_content(path)) for path in paths[:2]] == before
    assert before[0] != before[1]
    old = read_content(paths[2])
    expected = content(2)
    assert list(old["episodes"]) == [*expected["episodes"], "R_c"]
    assert np.isnan(old["episodes"]["R_c"][0]) and old["episodes"]["R_c"][1:] == [*range(19)]
    assert old["episodes"]["seed"] == expected["episodes"]["seed"].tolist()
    for name in ("RAG", "more3"):
        assert old["episodes"][name] == [float(f"{v:.6g}") for v in expected["episodes"][name]]
    six = [float(f"{v:.6g}") for v in expected["curves"]["curve3"]]  # as version 0.1 wrote them
    assert old["curves"]["curve3"] == six
    assert evaluation(1).done(folder) and not evaluation(2).done(folder)
    assert read_piece(evaluation(1), folder).content["training"] == {"steps": 1}
    assert One().read(folder) == ROWS
    assert pack(folder) == (0, 3)


def test_a_new_file_is_over_the_pack_and_goes_into_the_next(folder):
    pack(folder)
    told = read_content(evaluation(0).piece(folder))
    told["episodes"]["RAG"] = [0.5] * 20
    write_piece(evaluation(0).piece(folder), told)
    write_piece(evaluation(2).piece(folder), content(2) | {"key": evaluation(2).key})
    for fresh in ((2, 4), (0, 4)):
        assert (read_piece(evaluation(0), folder).frame["RAG"] == 0.5).all()
        assert (read_piece(evaluation(1), folder).frame["RAG"] != 0.5).all()
        assert evaluation(2).done(folder)
        assert pack(folder) == fresh


def test_of_two_formats_the_present_one_is_packed_and_both_are_gone(folder):
    path = evaluation(0).piece(folder)
    path.with_suffix(".json").write_text("{}")
    before = plain(read_content(path))
    assert pack(folder) == (3, 3) and plain(read_content(path)) == before
    assert not path.with_suffix(".json").exists()


def unequal(path):
    told = read_content(path)
    told["episodes"]["RAG"].append(1.0)
    write_piece(path, told)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:100]),
        lambda path: path.rename(path.with_stem("other")),
        lambda path: path.with_suffix(".2.json").write_text('{"episodes": []}'),
        lambda path: path.with_suffix(".2.json").write_text("{"),
        no_metadata, lacking, unequal,
    ],
)  # fmt: skip
def test_nothing_is_packed_beside_a_damaged_piece(folder, damage):
    damage(evaluation(1).piece(folder))
    before = {path: path.read_bytes() for path in (folder / "pieces").iterdir()}
    with pytest.raises(ValueError, match="is damaged"):
        pack(folder)
    assert {path: path.read_bytes() for path in (folder / "pieces").iterdir()} == before


@pytest.mark.parametrize("text", ["[]", '{"runs": []}', '{"rows": [1]}'])
def test_other_files_stay_where_they_are(folder, text):
    (folder / "pieces" / "notes.json").write_text(text)
    assert pack(folder) == (3, 3)
    assert (folder / "pieces" / "notes.json").read_text() == text


@pytest.mark.parametrize("when", ["written", "removed"])
def test_a_pack_that_is_cut_leaves_every_piece_as_it_was(folder, monkeypatch, when):
    path = evaluation(0).piece(folder)
    path.with_suffix(".json").write_text("{}")  # of an earlier version: the other one is over it
    pack(folder)
    told = read_content(path)
    told["episodes"]["RAG"] = [0.5] * 20
    write_piece(path, told)
    path.with_suffix(".json").write_text("{}")
    paths = [evaluation(seed).piece(folder) for seed in (0, 1)]
    before = [plain(read_content(path)) for path in paths]

    def cut(self, *words, **options):
        if when == "written" or removed:
            raise KeyboardInterrupt
        removed.append(self)
        unlink(self)

    removed, unlink = [], type(path).unlink
    name = "replace" if when == "written" else "unlink"
    monkeypatch.setattr(type(path), name, cut)
    with pytest.raises(KeyboardInterrupt):
        pack(folder)
    monkeypatch.undo()
    assert [plain(read_content(path)) for path in paths] == before
    assert pack(folder)[1] == 3 and [plain(read_content(path)) for path in paths] == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-30]),
        lambda path: path.write_bytes(path.read_bytes()[:900] + b"x" + path.read_bytes()[901:]),
        other_table, no_metadata, lambda path: path.write_bytes(b""),
    ],
)  # fmt: skip
def test_a_damaged_pack_is_named(folder, damage):
    pack(folder)
    path = folder / "pieces" / "packed.parquet"
    damage(path)
    for call in (lambda: read_piece(evaluation(0), folder), lambda: pack(folder)):
        with pytest.raises(ValueError, match=r"packed\.parquet is damaged") as caught:
            call()
        assert "\n" not in str(caught.value) and "where it was kept" in str(caught.value)
    path.unlink()
    assert not evaluation(0).done(folder)


def test_rows_of_a_packed_piece_stand_together(folder):
    from pyarrow import parquet

    pack(folder)
    path = folder / "pieces" / "packed.parquet"
    table = parquet.read_table(path)
    mixed = np.random.default_rng(0).permutation(len(table))
    parquet.write_table(table.take(mixed), path)
    with pytest.raises(ValueError, match="do not stand together"):
        read_piece(evaluation(0), folder)


def test_a_packed_piece_that_tables_cannot_use_is_named_by_its_key(folder):
    key = evaluation(0).key
    told = content() | {"key": key, "training": {"seconds": "long"}}
    write_piece(evaluation(0).piece(folder), told)
    pack(folder)
    with pytest.raises(ValueError, match=rf"{key} in .*packed\.parquet is damaged .seconds"):
        read_piece(evaluation(0), folder)
    assert len(read_piece(evaluation(1), folder).frame) == 20


def test_without_evaluations_there_is_nothing_to_pack(tmp_path):
    write_rows(One().piece(tmp_path), ROWS)
    with pytest.raises(ValueError, match="holds no piece of an evaluation"):
        pack(tmp_path)
    assert len(packed(tmp_path / "pieces")) == 0 and One().done(tmp_path)


# Pieces of rows


def test_rows_come_back_to_the_last_digit(tmp_path):
    write_rows(tmp_path / "a.parquet", ROWS)
    back = read_rows(tmp_path / "a.parquet")
    assert back == ROWS and type(back["rows"][0]["n"]) is int
    assert list(back["rows"][0]) == list(ROWS["rows"][0])
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_a_row_without_a_leaf_has_none_there(tmp_path):
    rows = [{"a": 1}, {"a": 2, "point": {"share": 0.5}}]
    write_rows(tmp_path / "a.parquet", {"key": "a", "rows": rows})
    assert read_rows(tmp_path / "a.parquet")["rows"][0] == {"a": 1, "point": {"share": None}}


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_a_task_that_stands_alone_reads_either_format(tmp_path, suffix):
    task = One()
    assert not task.done(tmp_path) and task.needs == ()
    path = task.piece(tmp_path).with_suffix(suffix)
    path.parent.mkdir()
    if suffix == ".json":
        path.write_text(json.dumps(ROWS))
    else:
        write_rows(path, ROWS)
    assert task.done(tmp_path) and task.read(tmp_path, rows=2) == ROWS
    with pytest.raises(ValueError, match=f"a-1{suffix} is damaged .not a piece of a-1"):
        task.read(tmp_path, rows=3)


@pytest.mark.parametrize("change", [{"key": "b-2"}, {"rows": []}])
def test_a_piece_of_another_task_or_without_rows_is_named(tmp_path, change):
    write_rows(One().piece(tmp_path), {**ROWS, **change})
    with pytest.raises(ValueError, match=r"a-1\.parquet is damaged"):
        One().read(tmp_path)
