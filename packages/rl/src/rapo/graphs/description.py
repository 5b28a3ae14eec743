"""What a graph is, in lines for a reader: sizes, spreading, operating point, labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from scipy.sparse.csgraph import connected_components

from rapo.cascade.graph import Graph
from rapo.cascade.regions import make_regions
from rapo.cascade.setting import Setting
from rapo.graphs.exposure import exposure_point
from rapo.graphs.fit import fit
from rapo.graphs.scale import size_up_to
from rapo.graphs.spectral_radius import spectral_radius
from rapo.graphs.stimuli import stimuli_in_reach
from rapo.graphs.warnings import ungated_edges

Line = tuple[str, str]
"""A name and the text that belongs to it."""

LARGE = 20
"""A cascade of more than this times the usual size is only called larger: it takes long to run."""
_VALUES_SHOWN = 8


def describe(graph: Graph) -> list[Line]:
    """All lines about a graph, part by part."""
    return [line for part in PARTS for line in part(graph)]


def network_lines(graph: Graph) -> list[Line]:
    """Sizes: nodes, edges, components, V_sens and stimuli, and what was left out on loading."""
    count, part = connected_components(graph.neighbours, directed=False)
    whole = "all connected" if count == 1 else f"{count:,} components"
    if count > 1:
        whole += f", the largest of {int(np.bincount(part).max()):,}"
    inside = int(graph.sensitive.sum())
    within = int((graph.sensitive[graph.sources] & graph.sensitive[graph.indices]).sum())
    reach = int(stimuli_in_reach(graph).sum())
    origin = graph.meta.get("source", "the generator" if "generator" in graph.meta else "a program")
    lines = [
        ("graph", f"{graph.hash}, from {origin}"),
        ("nodes", f"{graph.n:,}, {whole}"),
        ("edges", f"{graph.edges:,} directed, {graph.edges / graph.n:.1f} a node"),
        ("V_sens", f"{inside:,} nodes ({inside / graph.n:.0%}), {within:,} edges inside"),
        (
            "stimuli",
            f"{graph.stimuli} of {graph.support.shape[1]} seeds each, "
            + ("all" if reach == graph.stimuli else f"{reach} of them")
            + " with a path to V_sens",
        ),
    ]
    left_out = {
        "self-loops": graph.meta.get("self_loops_dropped", 0),
        "repeated edges": graph.meta.get("duplicates_dropped", 0),
        "nodes of V_sens outside its largest part": graph.meta.get("sensitive_left_out", 0),
    }
    counted = [f"{number:,} {what}" for what, number in left_out.items() if number]
    return lines + ([("left out", ", ".join(counted))] if counted else [])


def spread_lines(graph: Graph) -> list[Line]:
    """Probabilities, how far they carry, and how many edges the gate cannot hold."""
    setting = Setting.default()
    radius, stay = spectral_radius(graph.adjacency), setting.stopping
    lines = []
    if graph.edges:
        least, middle, most = np.quantile(graph.prob, (0, 0.5, 1))
        factor = graph.meta.get("scale")
        times = f"scaled by {factor:.4g}" if isinstance(factor, float) else "not scaled"
        lines.append(("probabilities", f"{least:.2g} to {most:.2g}, median {middle:.2g}, {times}"))
    capped, ungated = int(graph.meta.get("capped_edges", 0)), ungated_edges(graph, setting.psi_min)
    lines.append(
        (
            "gate",
            f"{capped:,} edges capped, {ungated:,} above {1 / (1 + setting.psi_min):.2f}, which "
            f"even psi_min {setting.psi_min:g} leaves above 1/2",
        )
    )
    lines.append(
        (
            "spread",
            f"spectral radius {radius:.3g}, / (1 - s) {radius / stay:.3g}: cascades "
            + ("die out by themselves" if radius < stay else "can last"),
        )
    )
    most = LARGE * setting.cascade_target
    size = size_up_to(graph, setting, most)
    number = f"{size.least:.1f}" if size.finished else f"more than {most:g}"
    alone = setting.rates[1] / stay
    lines.append(
        (
            "cascade",
            f"{number} nodes active on average (nominal kernel, moderate action); injection "
            f"alone keeps {alone:.1f}, scaled graphs have {setting.cascade_target:g}",
        )
    )
    return lines


def label_lines(graph: Graph) -> list[Line]:
    """Every label with its values and how many nodes have them."""
    lines = []
    for name, values in graph.labels.items():
        counts = Counter(value for value in values if value is not None)
        shown = [f"{value} ({number:,})" for value, number in counts.most_common(_VALUES_SHOWN)]
        if len(counts) == len(values) - values.count(None) > _VALUES_SHOWN:
            shown = [f"{len(counts):,} values, each of one node"]
        elif len(counts) > _VALUES_SHOWN:
            shown.append(f"and {len(counts) - _VALUES_SHOWN:,} values more")
        if missing := values.count(None):
            shown.append(f"none for {missing:,}")
        lines.append((f"label {name}", ", ".join(shown)))
    return lines


def memory_lines(graph: Graph) -> list[Line]:
    """The operating point: which regions can scar with the paper's constants, and when fitted."""
    setting = Setting.default()
    plain = make_regions(setting.regions, graph, straddle=setting.straddle)
    try:
        result = fit(graph)
    except ValueError as error:
        return [("operating point", str(error))]
    fitted = exposure_point(graph, result.regions, result.params)
    return [
        ("paper's constants", str(exposure_point(graph, plain))),
        ("fit", str(result)),
        ("fitted", str(fitted)),
    ]


PARTS: tuple[Callable[[Graph], list[Line]], ...] = (
    network_lines,
    spread_lines,
    memory_lines,
    label_lines,
)
"""The parts of `describe`, in this order; another one is another function from a graph to lines."""
