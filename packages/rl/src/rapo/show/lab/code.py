"""The page's metrics again elsewhere: as a Python program, and as a command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rapo.show.lab.metrics import ROWS
from rapo.show.lab.policies import load_policy
from rapo.show.lab.request import CONSTANTS, FILE, GENERATED, Episodes, Variant
from rapo.show.lab.sources import Source

_HEAD = '''\
import gymnasium
import rapo


def metrics(result):
    """Means over episodes; of heavy tails, ratios of means where the metric is a ratio."""
    rows = {{**result.summary(), **(result.pooled() if result.heavy_tailed else {{}})}}
    return {{name: [rows[name]["mean"], *rows[name]["ci95"]] for name in {rows}}}


'''


def as_python(source: Source, variants: Sequence[Variant], episodes: Episodes) -> str:
    """A program that prints the metrics of the variants, which it calls `a` and `b`."""
    setup, source_arguments = source.code()
    options = [
        f"episodes={episodes.count}", f"seed={episodes.seed}", f"coupled={episodes.coupled}",
        *([f"stimuli={episodes.stimulus}"] if episodes.stimulus else []),
        "against_P0=True", "selectivity=True",
    ]  # fmt: skip
    lines = [*setup, f"options = dict({', '.join(options)})"]
    for name, variant in zip("ab", variants, strict=False):
        loaded = load_policy(source, variant)
        constants = ", ".join(f"{n}={v!r}" for n, v in variant.params.to_dict().items())
        arguments = [
            *source_arguments,
            *([f"regions={variant.regions!r}"] if variant.regions else []),
            f"deformation={variant.scope!r}",
            *([f"observe={loaded.observe!r}"] if loaded.observe != "x" else []),
            f"params=rapo.FieldParams({constants})",
        ]
        lines += [
            "",
            *loaded.code,
            "env = gymnasium.make(",
            *(f"    {argument}," for argument in arguments),
            ")",
            f"{name} = rapo.rsd.evaluate(env, policy, **options)",
            f'print("{name.upper()}", metrics({name}))',
        ]
    return _HEAD.format(rows=ROWS) + "\n".join(lines) + "\n"


def as_command(source: Source, variants: Sequence[Variant], episodes: Episodes) -> str:
    """A command for every variant, which prints its metrics; without `--print` it opens the page.

    Options that a variant shares with the first variant of the source are left out.
    """
    return "".join(f"{_command(source, variant, episodes)}\n" for variant in variants)


def _command(source: Source, variant: Variant, episodes: Episodes) -> str:
    ident, first = source.id, source.variant
    line = ["rapo", "lab", "--print"]
    if ident.kind == FILE:
        line += ["--graph", ident.path]
    else:
        generated = ["--nodes", str(ident.nodes), "--graph-seed"]
        line += generated if ident.kind == GENERATED else ["--env", ident.kind, "--platform-seed"]
        line.append(str(ident.seed))
    for name in CONSTANTS:
        value = getattr(variant.params, name)
        if value != getattr(first.params, name):
            line += ["--set", f"{name}={value!r}"]
    for name in ("regions", "scope", "policy"):
        text = getattr(variant, name)
        if text != getattr(first, name):
            line += [f"--{name}", text]
    line += ["--episodes", str(episodes.count), "--seed", str(episodes.seed)]
    if episodes.stimulus:
        line += ["--stimulus", str(episodes.stimulus)]
    return shlex.join([*line, *(["--coupled"] if episodes.coupled else [])])
