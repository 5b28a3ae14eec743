"""The page's numbers again elsewhere: as Python, and as a command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rapo.show.lab.numbers import ROWS
from rapo.show.lab.policies import find_policy
from rapo.show.lab.request import CONSTANTS, FILE, GENERATED, Draws, Place, Side
from rapo.show.lab.sources import Source

_TELL = '''

def numbers(result):
    """Means over episodes; of heavy tails, ratios of means where there are such."""
    found = {{**result.summary(), **(result.pooled() if result.heavy_tailed else {{}})}}
    return {{name: [found[name]["mean"], *found[name]["ci95"]] for name in {rows}}}
'''


def as_python(source: Source, sides: Sequence[Side], draws: Draws) -> str:
    """A program that finds the numbers of the sides, `a` and `b`, and prints them."""
    setup, made = source.code()
    lines = [
        "import gymnasium",
        "import rapo",
        *_TELL.format(rows=ROWS).rstrip().split("\n"),
        "",
        "",
    ]
    lines += setup
    options = [
        f"episodes={draws.episodes}", f"seed={draws.seed}", f"coupled={draws.coupled}",
        *([f"stimuli={draws.stimulus}"] if draws.stimulus else []),
        "against_P0=True", "selectivity=True",
    ]  # fmt: skip
    lines.append(f"options = dict({', '.join(options)})")
    for name, side in zip("ab", sides, strict=False):
        found = find_policy(source, side)
        constants = ", ".join(f"{n}={v!r}" for n, v in side.params.to_dict().items())
        arguments = [
            *made,
            *([f"regions={side.regions!r}"] if side.regions else []),
            f"deformation={side.scope!r}",
            *([f"observe={found.observe!r}"] if found.observe != "x" else []),
            f"params=rapo.FieldParams({constants})",
        ]
        lines += ["", *found.code, "env = gymnasium.make("]
        lines += [f"    {argument}," for argument in arguments]
        lines += [
            ")",
            f"{name} = rapo.rsd.evaluate(env, policy, **options)",
            f'print("{name.upper()}", numbers({name}))',
        ]
    return "\n".join(lines) + "\n"


def as_command(place: Place, sides: Sequence[Side], draws: Draws, most: Side) -> str:
    """A command a side, whose numbers are printed; without `--print` it opens the page.

    Args:
        place: where.
        sides: the settings.
        draws: which episodes.
        most: the setting that the place begins with, which needs no words.
    """
    return "\n".join(_words(place, side, draws, most) for side in sides) + "\n"


def _words(place: Place, side: Side, draws: Draws, most: Side) -> str:
    words = ["rapo", "lab", "--print"]
    if place.kind == GENERATED:
        words += ["--nodes", str(place.nodes), "--graph-seed", str(place.seed)]
    elif place.kind == FILE:
        words += ["--graph", place.path]
    else:
        words += ["--env", place.kind, "--graph-seed", str(place.seed)]
    for name in CONSTANTS:
        value = getattr(side.params, name)
        if value != getattr(most.params, name):
            words += ["--set", f"{name}={value!r}"]
    if side.regions != most.regions:
        words += ["--regions", side.regions]
    if side.scope != "full":
        words += ["--scope", side.scope]
    if side.policy != most.policy:
        words += ["--policy", side.policy]
    words += ["--episodes", str(draws.episodes), "--seed", str(draws.seed)]
    if draws.stimulus:
        words += ["--stimulus", str(draws.stimulus)]
    if draws.coupled:
        words += ["--coupled"]
    return shlex.join(words)
