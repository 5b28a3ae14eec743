"""What is said of a graph: the numbers are its own."""

import numpy as np

from rapo.cascade.setting import Setting
from rapo.graphs import description
from rapo.graphs.description import describe, label_lines, network_lines, spread_lines
from rapo.graphs.generate import generate
from rapo.graphs.scale import cascade_size
from rapo.graphs.warnings import ungated_edges


def text_of(lines, name):
    return dict(lines)[name]


def test_the_numbers_shown_are_those_of_the_graph():
    graph = generate(100, 1)
    lines = network_lines(graph)
    assert text_of(lines, "nodes").startswith("100, all connected")
    assert text_of(lines, "edges").startswith(f"{graph.edges} ")
    inside = int(graph.sensitive.sum())
    assert text_of(lines, "V_sens").startswith(f"{inside} nodes ({inside}%)")
    assert "all with a path" in text_of(lines, "stimuli")
    spread = spread_lines(graph)
    size = cascade_size(graph, Setting.default())
    assert text_of(spread, "cascade").startswith(f"{size:.1f} nodes")
    psi_min = Setting.default().psi_min
    capped, ungated = graph.meta["capped_edges"], ungated_edges(graph, psi_min)
    told = f"{capped} edges capped, {ungated} above {1 / (1 + psi_min):.2f}"
    assert text_of(spread, "gate").startswith(told)
    assert f"scaled by {graph.meta['scale']:.4g}" in text_of(spread, "probabilities")


def test_stimuli_without_a_path_and_strong_edges_are_counted():
    graph = generate(100, 1)
    prob = graph.prob.copy()
    prob[graph.sensitive[graph.indices]] = 0
    outside = [int(v) for v in np.flatnonzero(~graph.sensitive)[:2]]
    support, weights = [outside, graph.support[0][:2]], [[0.5, 0.5], [0.5, 0.5]]
    if not graph.sensitive[graph.support[0][:2]].any():
        support[1] = np.flatnonzero(graph.sensitive)[:2]
    prob[-3:] = 1.0
    prob[graph.sensitive[graph.indices]] = 0
    changed = graph.replace(prob=prob, support=support, weights=weights)
    assert "1 of them with a path" in text_of(network_lines(changed), "stimuli")
    bound = 1 / (1 + Setting.default().psi_min)
    strong = int((prob > bound).sum())
    assert f"{strong} above {bound:.2f}" in text_of(spread_lines(changed), "gate")


def test_a_huge_cascade_is_not_run_out(monkeypatch):
    graph = generate(500, 0)
    limits = []
    measured = description.size_up_to

    def size(graph, setting, enough, **options):
        limits.append(enough)
        return measured(graph, setting, enough, **options)

    monkeypatch.setattr(description, "size_up_to", size)
    lines = spread_lines(graph.replace(prob=np.full(graph.edges, 0.9)))
    enough = 20 * Setting.default().cascade_target
    assert limits == [enough]
    assert text_of(lines, "cascade").startswith(f"more than {enough:g} ")


def test_labels_with_their_values_and_counts():
    graph = generate(100, 1).replace(
        labels={
            "side": ["a"] * 60 + ["b"] * 30 + [None] * 10,
            "id": [f"n{i}" for i in range(100)],
            "group": [str(i % 20) for i in range(100)],
        }
    )
    lines = label_lines(graph)
    assert text_of(lines, "label side") == "a (60), b (30), none for 10"
    assert text_of(lines, "label id") == "100 values, each of one node"
    group = text_of(lines, "label group")
    assert group.endswith("and 12 values more") and group.count("(5)") == 8
    assert label_lines(generate(100, 1)) == []


def test_another_paragraph_is_another_part(monkeypatch):
    monkeypatch.setattr(
        description, "PARTS", (*description.PARTS, lambda graph: [("more", str(graph.n))])
    )
    assert describe(generate(100, 1))[-1] == ("more", "100")
