"""The evaluations of the size study: every method at every size, trained for as many steps."""

from __future__ import annotations

from rapo.paper.jobs import Evaluation
from rapo.paper.presets import Preset
from rapo_core.checks import UserError

METHODS = ("GE", "PM-ST", "RAPO", "off@rep")


def plan(preset: Preset) -> list[Evaluation]:
    """Return the evaluations of every method on every size and graph.

    They are ordered by seed, so that a run that is cut has whole seeds at all sizes. A size whose
    graphs have as many regions as the main size comes a second time, with regions as large as
    those of the main size.
    """
    rows = [(n, False) for n in preset.sizes] + [(n, True) for n in preset.as_many]
    kinds = [evaluations(preset, n, m, as_large=large) for n, large in rows for m in METHODS]
    return list(dict.fromkeys(each for kind in zip(*kinds, strict=True) for each in kind))


def evaluations(
    preset: Preset, nodes: int, method: str, *, as_large: bool = False
) -> list[Evaluation]:
    """Return the evaluations of a method on the graphs of one size.

    The main size is trained anew, for the steps of this study.

    Args:
        preset: the sizes.
        nodes: of the graphs.
        method: one of `METHODS`.
        as_large: whether regions have the size they have on graphs of the main size, whatever
            `preset.as_many` says.
    """
    # GE neither sees regions nor pays for what they remember, so one training serves both.
    scaled = nodes in preset.as_many and not as_large and method != "GE"
    regions = as_many_regions(preset, nodes) if scaled else None
    return [
        Evaluation(
            preset.policy(method, seed, nodes=nodes, steps=preset.size_steps, regions=regions),
            method,
            episodes=preset.episodes,
        )
        for seed in preset.size_seeds
    ]


def as_many_regions(preset: Preset, nodes: int) -> str:
    """Return regions so large that a graph has as many of them as one of the main size.

    Cascades are as large at every size, so the number of regions says how their harm is spread.
    """
    kind, _, size = preset.setting.regions.partition(":")
    if kind not in ("community", "pieces"):
        raise UserError(
            f"as_many needs regions of a mean size, such as 'community:3.2', got "
            f"{preset.setting.regions!r}; leave as_many empty"
        )
    return f"{kind}:{float(size) * nodes / preset.nodes:g}"
