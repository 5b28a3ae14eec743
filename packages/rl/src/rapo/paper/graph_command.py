"""What `rapo graph` does with its words: a file becomes a saved graph, or is shown and drawn."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from rapo.cascade.graph import Graph
from rapo.cascade.regions import make_regions
from rapo.cascade.setting import Setting
from rapo.graphs.exposure import exposure_point
from rapo.graphs.fit import fit
from rapo.graphs.landmarks import stimuli_in_reach
from rapo.graphs.load import read_graph
from rapo.graphs.scale import size_up_to
from rapo.graphs.spread import spectral_radius, ungated_edges
from rapo_core.checks import UserError
from rapo_core.files import refuse_to_overwrite

Line = tuple[str, str]
"""A name and what is said of it."""

LARGE = 20
"""A cascade of more than this times the usual size is only said to be so: it takes long to run."""
_VALUES_SHOWN = 8
_IN_WORDS_OF_THE_COMMAND = {
    "pass self_loops='drop'": "pass --drop",
    "pass duplicates='drop'": "pass --drop",
    "pass labels=<file>": "pass --labels FILE",
    "pass scale=True": "pass --scale",
    "leave probability=None": "leave --probability out",
    "leave sensitive=None": "leave --sensitive out",
    "name it with sensitive=": "name it with --sensitive",
    "sensitive_part='largest'": "--sensitive-part largest",
    "name the right column": "name the right column (--source, --target, --probability)",
}
"""Remedies as the loaders word them, and as they are spelled on the command line."""


def graph_from_words(
    words: list[str],
    *,
    sensitive: str | None,
    undirected: bool,
    drop: bool,
    out: Path | None,
    force: bool,
    options: Mapping[str, Any],
) -> None:
    """Save the graph of a file (`FILE`), or print and draw what it is (`show FILE`).

    Args:
        words: the file, after `show` if it is only to be looked at.
        sensitive: V_sens as column=value or as ids with commas.
        undirected: whether edges stand for both directions.
        drop: whether to leave out self-loops and repeated edges.
        out: the .npz or, with `show`, the .png to write.
        force: whether `out` may be overwritten.
        options: further options of the loaders by name; None stands for their default.
    """
    from rich.console import Console

    from rapo.paper.graph_figure import network_figure

    if words == ["show"] and not Path("show").exists():
        raise UserError("rapo graph show needs the FILE to show, such as net.npz")
    show = words[0] == "show" and len(words) > 1
    if len(words) > 1 + show:
        raise UserError(f"one file at a time, got {words[show:]}; write rapo graph [show] FILE")
    path = Path(words[show])
    _check_out(out, ".png" if show else ".npz", path, show=show, force=force)
    chosen = {name: value for name, value in options.items() if value is not None}
    if sensitive is not None:
        chosen["sensitive"] = sensitive if "=" in sensitive else sensitive.split(",")
    if undirected:
        chosen["directed"] = False
    if drop:
        chosen.update(self_loops="drop", duplicates="drop")
    notes = Console(stderr=True)
    with notes.status(f"reading {path.name}"), _worded(notes):
        graph = read_graph(path, **chosen)
    console = Console()
    _print(console, describe(graph) if show else network_lines(graph))
    if show and out is not None:
        with notes.status(f"drawing {out.name}"):
            network_figure(graph, path.name)[0].savefig(out, dpi=150)
    elif out is not None:
        graph.save(out, force=force)
    if out is not None:
        more = "" if show else f"; rapo graph show {out} tells more"
        console.print(f"wrote {out}{more}", highlight=False, soft_wrap=True)


def _check_out(out: Path | None, suffix: str, path: Path, *, show: bool, force: bool) -> None:
    """Refuse a place that cannot or must not be written, before anything is read."""
    if out is None:
        if show:
            return
        name = path.name.partition(".")[0] or "net"
        raise UserError(f"say where to save the graph, for instance --out {name}.npz")
    if out.suffix != suffix:
        raise UserError(f"--out must end in {suffix} here, got {out.name!r}")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {out.parent}; make it first")
    refuse_to_overwrite(out, force=force)


@contextmanager
def _worded(notes: Any) -> Iterator[None]:
    """Warnings and errors of the loaders with remedies in the command's own words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        except ValueError as error:
            raise UserError(in_words(str(error))) from error
    for warning in caught:
        notes.print(f"rapo: {in_words(str(warning.message))}", highlight=False, soft_wrap=True)


def in_words(text: str) -> str:
    """What a loader says, with remedies as the command spells them."""
    for theirs, ours in _IN_WORDS_OF_THE_COMMAND.items():
        text = text.replace(theirs, ours)
    return text


def _print(console: Any, lines: list[Line]) -> None:
    margin = 2 + max(len(name) for name, _ in lines)
    for name, text in lines:
        for i, row in enumerate(wrap(text, max(console.width - margin, 30))):
            console.print(
                f"{'' if i else name:{margin}}{row}", highlight=False, markup=False, soft_wrap=True
            )


# --- what is said of a graph ---------------------------------------------------------------


def describe(graph: Graph) -> list[Line]:
    """Everything that `show` prints, part by part."""
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
    radius, stay = spectral_radius(graph.adjacency), 1 - setting.persistence
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
        found = fit(graph)
    except ValueError as error:
        return [("operating point", str(error))]
    fitted = exposure_point(graph, found.regions, found.params)
    return [
        ("paper's constants", str(exposure_point(graph, plain))),
        ("fit", str(found)),
        ("fitted", str(fitted)),
    ]


PARTS: tuple[Callable[[Graph], list[Line]], ...] = (
    network_lines,
    spread_lines,
    memory_lines,
    label_lines,
)
"""What `show` says, in this order; another paragraph is another function from a graph to lines."""
