"""The picture of a network."""

import numpy as np

from rapo.graphs.generate import generate
from rapo.show.network_figure import network_figure


def test_the_picture_marks_the_sensitive_set_and_the_seeds():
    graph = generate(100, 1)
    figure, ax = network_figure(graph, "net")
    others, inside, seeds = ax.collections[-3:]
    assert len(inside.get_offsets()) == graph.sensitive.sum()
    assert len(others.get_offsets()) == (~graph.sensitive).sum()
    marked = {tuple(xy) for xy in seeds.get_offsets().astype(np.float32).tolist()}
    used = graph.support[graph.weights > 0]
    assert marked == {tuple(xy) for xy in graph.positions[used].tolist()}
    weight = np.bincount(graph.support.ravel(), graph.weights.ravel(), minlength=graph.n)
    heaviest = seeds.get_offsets()[seeds.get_sizes().argmax()]
    assert weight[np.abs(graph.positions - heaviest).sum(axis=1).argmin()] > np.median(weight)
    assert any("net" in text.get_text() for text in figure.texts)


def test_far_nodes_do_not_shrink_the_picture():
    graph = generate(100, 1)
    positions = 0.5 + 0.1 * (graph.positions - 0.5)
    positions[[3, 4]] = [[0, 0], [1, 1]]
    figure, ax = network_figure(graph.replace(positions=positions), "net")
    assert np.ptp(ax.get_xlim()) < 0.2
    assert any("2 nodes" in text.get_text() for text in figure.texts)
    _, whole = network_figure(graph, "net")
    assert whole.get_xlim()[0] < 0 and whole.get_xlim()[1] > 1
