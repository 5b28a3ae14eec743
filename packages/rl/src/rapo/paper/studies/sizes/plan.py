"""Every method on every size, trained alike."""

from __future__ import annotations

from rapo.paper.jobs import Evaluation
from rapo.paper.presets import Preset
from rapo_core.checks import UserError

METHODS = ("GE", "PM-ST", "RAPO", "off@rep")


def plan(preset: Preset) -> list[Evaluation]:
    """Every method on every size and graph, trained alike at all sizes.

    Seed by seed, so that a run that is cut has whole seeds at all sizes. Sizes with as many regions
    as the main one come a second time, with regions as large as there.
    """
    rows = [(n, False) for n in preset.sizes] + [(n, True) for n in preset.as_many]
    kinds = [evaluations(preset, n, m, as_large=large) for n, large in rows for m in METHODS]
    return list(dict.fromkeys(each for kind in zip(*kinds, strict=True) for each in kind))


def evaluations(
    preset: Preset, nodes: int, method: str, *, as_large: bool = False
) -> list[Evaluation]:
    """A method on the graphs of one size; the main size too has the steps of this study.

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
    """The regions of the setting, so much larger that a graph has as many as one of the main size.

    Cascades are as large at every size, so the number of regions says how their harm is spread.
    """
    kind, _, size = preset.setting.regions.partition(":")
    if kind not in ("community", "pieces"):
        raise UserError(
            f"as_many needs regions of a mean size, such as 'community:3.2', got "
            f"{preset.setting.regions!r}; leave as_many empty"
        )
    return f"{kind}:{float(size) * nodes / preset.nodes:g}"
