"""Values that controls do not take: the control is named, with what was received."""

from __future__ import annotations

import pytest

from rapo.show.lab.policies import load_policy
from rapo.show.lab.request import ControlError, Episodes, SourceId, Variant
from rapo.show.lab.sources import MOST_BYTES, find_source
from rapo_core.params import FieldParams


@pytest.mark.parametrize(
    ("words", "control", "part"),
    [
        ({"params": {"tau": -1}}, "tau", "-1"),
        ({"params": {"lam": 0}}, "lam", "(0, 1]"),
        ({"params": {"psi_min": 1.5}}, "psi_min", "1.5"),
        ({"params": {"delta": None}}, "delta", "None"),
        ({"params": {"w_H": "two"}}, "w_H", "two"),
        ({"params": {"alpha": 1}}, "params", "alpha"),
        ({"scope": "topk:0"}, "scope", "topk"),
        ({"scope": 3}, "scope", "3"),
        ({"regions": "x" * 600}, "regions", "short"),
        ({"extra": 1}, "variant", "extra"),
    ],
)
def test_a_side(words, control, part):
    with pytest.raises(ControlError) as error:
        Variant.parse(words, FieldParams())
    assert error.value.control == control
    assert part in str(error.value)


@pytest.mark.parametrize(
    ("words", "control"),
    [
        ({"kind": "moon"}, "source"),
        ({"kind": "generated", "nodes": 5}, "nodes"),
        ({"kind": "generated", "nodes": 10**6}, "nodes"),
        ({"kind": "generated", "nodes": 60.5}, "nodes"),
        ({"kind": "generated", "nodes": True}, "nodes"),
        ({"kind": "generated", "seed": -1}, "graph_seed"),
        ({"kind": "file", "path": " "}, "path"),
        ([], "source"),
    ],
)
def test_a_place(words, control):
    with pytest.raises(ControlError) as error:
        SourceId.parse(words)
    assert error.value.control == control


@pytest.mark.parametrize(
    ("words", "control"),
    [
        ({"count": 1}, "episodes"),
        ({"count": 10_000}, "episodes"),
        ({"seed": None}, "seed"),
        ({"stimulus": 21}, "stimulus"),
        ({"coupled": "no"}, "coupled"),
        ({"count": 4, "shown": 4}, "shown"),
    ],
)
def test_draws(words, control):
    with pytest.raises(ControlError) as error:
        Episodes.parse(words, 20)
    assert error.value.control == control


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    for name, content, part in (
        ("none.csv", None, "no file"),
        ("words.csv", "not a graph\n", "words.csv"),
        ("damaged.npz", "PK\x03\x04 broken", "damaged.npz"),
    ):
        path = tmp_path / name
        if content is not None:
            path.write_text(content)
        with pytest.raises(ControlError, match=part) as error:
            find_source(SourceId("file", path=str(path)))
        assert error.value.control == "path"
    big = tmp_path / "big.csv"
    with big.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(ControlError, match="up to"):
        find_source(SourceId("file", path=str(big)))


def test_a_file_that_changes_is_read_again(edges, tmp_path):
    path = tmp_path / "net.csv"
    path.write_text(edges.read_text())
    first = find_source(SourceId("file", path=str(path)))
    assert find_source(SourceId("file", path=str(path))) is first
    path.write_text(edges.read_text() + "100,0\n0,100\n")
    assert find_source(SourceId("file", path=str(path))).graph.n == first.graph.n + 1


def test_a_graph_of_ones_own_begins_fitted(edges):
    import rapo

    source = find_source(SourceId("file", path=str(edges)))
    fit = rapo.fit(source.graph)
    assert source.variant.params == fit.params
    assert source.variant.regions == fit.spec


def test_policies_that_do_not_fit(source, checkpoint, edges):
    side = source.variant
    for policy, control, part in (
        ("bold", "policy", "no policy is called 'bold'"),
        ("gone.pt", "policy", "checkpoint of rapo 0.2"),
        ("gone.zip", "policy", "there is no file"),
        (str(edges), "policy", "no policy"),
    ):
        with pytest.raises(ControlError, match=part) as error:
            load_policy(source, Variant(side.params, side.regions, policy=policy))
        assert error.value.control == control
    assert load_policy(source, Variant(side.params, side.regions, policy=str(checkpoint))).policy
    with pytest.raises(ControlError, match="was trained on graph"):
        load_policy(find_source(SourceId(nodes=60, seed=2)), Variant(side.params, side.regions,
                                                               policy=str(checkpoint)))  # fmt: skip
    with pytest.raises(ControlError, match="regions it was trained with") as error:
        load_policy(source, Variant(side.params, "node", policy=str(checkpoint)))
    assert error.value.control == "regions"
    bad = checkpoint.with_name("bad.pt")
    bad.write_bytes(b"nothing")
    with pytest.raises(ControlError, match=r"bad\.pt"):
        load_policy(source, Variant(side.params, side.regions, policy=str(bad)))
