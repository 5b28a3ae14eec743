"""The trade-off of utility and safety: RAPO under changed fields, baselines and shields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from rapo.agents.methods import SHIELD_THRESHOLD
from rapo.core.params import FieldParams
from rapo.experiments.paper import DIMINISHING_W_H, METRICS, TABLE1
from rapo.experiments.presets import Preset
from rapo.experiments.studies.graph_means import FEW, mean_of, retrained, told, unit_means
from rapo.experiments.studies.section import DIFFERS, HOLDS, Claim, Section, Store
from rapo.experiments.tasks import Evaluate
from rapo.rsd.statistics import mean_interval, paired_interval

BASELINES = ("GE", "DR", "PM-ST", "PM-RNN", "Shield-UM")
TITLES = {"RAG": "RAG", "AUC_R": "AUC-R", "SM_R": "SM-R", "ReplayRet": "ReplayRet",
          "OddsRatio": "OddsRatio"}  # fmt: skip
DEFAULT = FieldParams()


Means = dict[tuple[Evaluate, ...], pd.DataFrame]
"""Graph means by the tasks of a point."""


@dataclass(frozen=True)
class Point:
    """A place in the picture: evaluations of one kind on several graphs."""

    group: str
    """`RAPO`, `tau`, `retrained`, `Shield` or a baseline."""
    name: str
    tasks: tuple[Evaluate, ...]
    params: FieldParams = DEFAULT
    threshold: float | None = None


Groups = dict[str, list[Point]]


def changes_of(params: FieldParams) -> tuple[tuple[str, float], ...]:
    """What differs from the default, so that the default point is Table 1's evaluation."""
    mine, other = params.to_dict(), DEFAULT.to_dict()
    return tuple((name, float(mine[name])) for name in mine if mine[name] != other[name])


def under(preset: Preset, params: FieldParams, seeds: Sequence[int]) -> tuple[Evaluate, ...]:
    """RAPO's trained policy under other constants of the fields."""
    changed = changes_of(params)
    label = "-".join(["RAPO", *(f"{name}{value:g}" for name, value in changed)]) if changed else ""
    return tuple(preset.evaluation("RAPO", s, params=changed, label=label) for s in seeds)


def shield_evaluations(preset: Preset, threshold: float) -> tuple[Evaluate, ...]:
    """GE behind a shield; the fixed Shield's own threshold is no change."""
    given = None if threshold == SHIELD_THRESHOLD else threshold
    return tuple(preset.evaluation("Shield", s, threshold=given) for s in preset.retrain_seeds)


def grid(preset: Preset) -> list[Point]:
    """w_H x eta at the default tau, the default among them."""
    values = [replace(DEFAULT, w_H=w, eta=e) for e in preset.eta for w in preset.w_H]
    if DEFAULT not in values:
        values.append(DEFAULT)
    return [
        Point("RAPO", f"w_H {p.w_H:g}, eta {p.eta:g}", under(preset, p, preset.sweep_seeds), p)
        for p in values
    ]


def tau_sweep(preset: Preset) -> list[Point]:
    """Tau at the default w_H and eta."""
    values = [replace(DEFAULT, tau=tau) for tau in preset.tau]
    return [Point("tau", f"tau {p.tau:g}", under(preset, p, preset.sweep_seeds), p) for p in values]


def checks(preset: Preset) -> list[tuple[FieldParams, Point, Point]]:
    """Constants, RAPO's policy evaluated under them, and one trained under them; same graphs."""
    if not preset.retrained:
        return []
    values = [DEFAULT, *(replace(DEFAULT, **{name: v}) for name, v in preset.retrained)]
    pairs = []
    for p in values:
        name = " ".join(f"{k} {v:g}" for k, v in changes_of(p)) or "default"
        trained = retrained(preset, params=p)
        pairs.append((
            p,
            Point("RAPO", name, under(preset, p, preset.retrain_seeds), p),
            Point("retrained", name, trained, p),
        ))  # fmt: skip
    return pairs


def shields(preset: Preset) -> list[Point]:
    """The fixed-threshold Shield at each threshold."""
    return [
        Point("Shield", f"threshold {t:g}", shield_evaluations(preset, t), threshold=t)
        for t in preset.thresholds
    ]


def baselines(preset: Preset) -> list[Point]:
    """Table 1's rows of the methods that do not deform."""
    return [
        Point(m, m, tuple(preset.evaluation(m, s) for s in preset.graph_seeds))
        for m in BASELINES
        if m in preset.methods
    ]


def plan(preset: Preset) -> list[Evaluate]:
    """All points, and GE's return on the main graphs, the unit of ReplayRet."""
    points = [*grid(preset), *tau_sweep(preset), *shields(preset), *baselines(preset)]
    points += [point for _, *pair in checks(preset) for point in pair]
    tasks = [preset.evaluation("GE", s) for s in preset.graph_seeds]
    tasks += [task for point in points for task in point.tasks]
    return unique(tasks)


def unique(tasks: Sequence[Evaluate]) -> list[Evaluate]:
    """Every task once."""
    return list({task.key: task for task in tasks}.values())


def analyse(store: Store) -> Section:
    """The picture, the effect of w_H, the check of the method and the shield's tuning."""
    preset = store.preset
    base = store.base_return()
    groups = {
        "RAPO": grid(preset), "tau": tau_sweep(preset), "Shield": shields(preset),
        "baselines": baselines(preset), "retrained": [point for *_, point in checks(preset)],
    }  # fmt: skip
    means = {
        point.tasks: unit_means(store, point.tasks, base)
        for points in groups.values()
        for point in points
    }
    rows = [_row(point, means[point.tasks]) for points in groups.values() for point in points]
    curve = pd.DataFrame(rows).drop_duplicates(["group", "name"])
    tuned = _tunings(store)
    compared = _compared(store, base)
    size = (
        f"{preset.nodes} nodes, {preset.episodes} episodes a graph; sweeps on "
        f"{len(preset.sweep_seeds)} graphs with RAPO's policy of {preset.steps:,} training steps"
    )
    few = f"{len(preset.retrain_seeds)} graph{'s' if len(preset.retrain_seeds) > 1 else ''}"
    text = [
        f"{size}; baselines as in Table 1 ({len(preset.graph_seeds)} graphs), the fixed Shield on "
        f"{few}. A sweep evaluates the trained policy under changed constants of the fields "
        "and does not train again; 95% intervals over graph means.",
    ]
    tables = [
        (f"RAPO over w_H and eta: RAG / ReplayRet. {size}", _printed_grid(preset, means)),
        (f"The other points. Tau: {len(preset.sweep_seeds)} graphs, Shield: {few}, baselines: "
         f"{len(preset.graph_seeds)} graphs", _printed_points(groups, means)),
    ]  # fmt: skip
    figures = [
        ("tradeoff", "Replay return against RAG, AUC-R and SM-R: RAPO along w_H and eta, beside "
         "methods that leave the kernel alone; up and to the left is better",
         _pareto(groups, means)),
        ("w_H", "What w_H buys and costs; the dotted line is where the paper sees returns diminish",
         _w_H_figure(preset, means)),
    ]  # fmt: skip
    if len(compared):
        text.append(
            f"Is that fair? On {few}, RAPO was also trained under the changed constants "
            f"({preset.retrain_steps:,} steps); the table has both, and the default trained as "
            "long, which shows what the shorter training alone does."
        )
        told = f"{few}, policy of {preset.steps:,} steps against {preset.retrain_steps:,} steps"
        tables.append((f"Evaluated under changed fields, and trained under them: {told}", compared))
    if len(tuned):
        figures.append(
            ("shield_tuning", "How Shield-UM's threshold was found: Replay return of each trial on "
             "held-out episodes, in units of GE's, less RAPO's", _tuning_figure(tuned))
        )  # fmt: skip
    files = {"tradeoff": curve, "tradeoff_retrained": compared, "shield_tuning": tuned}
    return Section(
        name="tradeoff",
        title="Utility against safety",
        text=text,
        tables=tables,
        figures=figures,
        claims=_claims(groups, means),
        files={name: part for name, part in files.items() if len(part)},
    )


def _row(point: Point, found: pd.DataFrame) -> dict[str, Any]:
    row: dict[str, Any] = {
        "group": point.group, "name": point.name, "w_H": point.params.w_H, "eta": point.params.eta,
        "tau": point.params.tau, "threshold": point.threshold, "graphs": len(found),
    }  # fmt: skip
    for metric in METRICS:
        told = mean_interval(found[metric])
        row |= {metric: told.mean, f"{metric}_low": told.low, f"{metric}_high": told.high}
    return row


def _printed_grid(preset: Preset, means: Means) -> pd.DataFrame:
    points = {(p.params.w_H, p.params.eta): means[p.tasks] for p in grid(preset)}
    rows = []
    for w in sorted({w for w, _ in points}):
        row = {"w_H": f"{w:g}"}
        for eta in sorted({eta for _, eta in points}):
            found = points.get((w, eta))
            row[f"eta {eta:g}"] = (
                "-" if found is None else f"{told(found['RAG'])} / {told(found['ReplayRet'])}"
            )
        rows.append(row)
    return pd.DataFrame(rows)


def _printed_points(groups: Groups, means: Means) -> pd.DataFrame:
    rows = []
    for group in ("baselines", "Shield", "tau"):
        for point in groups[group]:
            who = {"Shield": f"Shield, {point.name}", "tau": f"RAPO, {point.name}"}
            row = {"": who.get(point.group, point.name)}
            row |= {TITLES[m]: told(means[point.tasks][m]) for m in METRICS}
            rows.append(row)
    return pd.DataFrame(rows)


def _compared(store: Store, base: float) -> pd.DataFrame:
    """Evaluated and retrained points of the same graphs, with the paired difference of RAG."""
    rows = []
    for _, evaluated, trained in checks(store.preset):
        a, b = (unit_means(store, point.tasks, base) for point in (evaluated, trained))
        gap = paired_interval(a["RAG"], b["RAG"])
        between = "" if np.isnan(gap.low) else f" [{gap.low:.2f}, {gap.high:.2f}]"
        rows.append({
            "constants": evaluated.name,
            "RAG evaluated": told(a["RAG"]),
            "RAG trained": told(b["RAG"]),
            "difference (paired)": f"{gap.difference:+.2f}{between}",
            "ReplayRet evaluated": told(a["ReplayRet"]),
            "ReplayRet trained": told(b["ReplayRet"]),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _tunings(store: Store) -> pd.DataFrame:
    """Trials of every Shield-UM: graph_seed, threshold, ReplayRet, target; and which was taken."""
    preset = store.preset
    parts = []
    if "Shield-UM" in preset.methods:
        for task in (preset.evaluation("Shield-UM", s) for s in preset.graph_seeds):
            shield = store.piece(task).content.get("shield") or {}
            if shield.get("tuning"):
                trials = pd.DataFrame(shield["tuning"])
                trials.insert(0, "graph_seed", task.policy.config.graph_seed)
                # tuning.csv keeps six digits
                taken = np.isclose(trials["threshold"], float(shield["threshold"]), rtol=1e-4)
                parts.append(trials.assign(taken=taken))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def along_w_H(points: Sequence[Point], means: Means) -> pd.DataFrame:
    """Mean RAG and ReplayRet by w_H (index) at the default eta."""
    table = {
        p.params.w_H: {m: mean_of(means[p.tasks][m]) for m in ("RAG", "ReplayRet")}
        for p in points
        if p.params.eta == DEFAULT.eta
    }
    return pd.DataFrame.from_dict(table, orient="index").sort_index()


def slopes(curve: pd.DataFrame) -> tuple[float, pd.Series, pd.Series] | None:
    """The w_H nearest to the paper's knee; fall per unit of w_H below it and above it.

    None when no value lies on both sides of the knee.
    """
    w = curve.index.to_numpy(float)
    knee = int(np.argmin(np.abs(w - DIMINISHING_W_H)))
    if knee in (0, len(w) - 1):
        return None
    below = (curve.iloc[0] - curve.iloc[knee]) / (w[knee] - w[0])
    above = (curve.iloc[knee] - curve.iloc[-1]) / (w[-1] - w[knee])
    return float(w[knee]), below, above


def _claims(groups: Groups, means: Means) -> list[Claim]:
    claims = []
    table = along_w_H(groups["RAPO"], means)
    knee = slopes(table)
    if knee is not None:
        at, below, above = knee
        claims.append(
            Claim(
                "Trade-off",
                "A larger w_H reduces RAG, with diminishing returns",
                f"diminishing beyond w_H ≈ {DIMINISHING_W_H}",
                f"RAG falls by {below['RAG']:.3f} a unit of w_H below {at:g}, by "
                f"{above['RAG']:.3f} above",
                HOLDS if below["RAG"] > 0 and above["RAG"] < below["RAG"] else DIFFERS,
                f"from {table.index[0]:g} to {table.index[-1]:g} at eta {DEFAULT.eta:g}",
            )
        )
        claims.append(
            Claim(
                "Trade-off",
                f"Beyond w_H ≈ {DIMINISHING_W_H} utility losses dominate",
                "more return lost than RAG gained",
                f"above {at:g} a unit of w_H costs {above['ReplayRet']:.3f} ReplayRet and takes "
                f"{above['RAG']:.3f} off RAG",
                HOLDS if above["ReplayRet"] > above["RAG"] else DIFFERS,
                f"below {at:g} it costs {below['ReplayRet']:.3f} and takes {below['RAG']:.3f}",
            )
        )
    claims += _dominance(groups, means)
    found = {p.name: means[p.tasks] for p in groups["baselines"]}
    if "PM-ST" in found:
        rag, kept = mean_of(found["PM-ST"]["RAG"]), mean_of(found["PM-ST"]["ReplayRet"])
        paper = TABLE1["PM-ST"]
        claims.append(
            Claim(
                "Trade-off",
                "PM-ST keeps the return and suppresses nothing",
                f"RAG {paper['RAG'][0]:.2f} at ReplayRet {paper['ReplayRet'][0]:.2f}",
                f"RAG {told(found['PM-ST']['RAG'])} at ReplayRet "
                f"{told(found['PM-ST']['ReplayRet'])}",
                HOLDS if rag >= 0.85 and kept >= 0.9 else DIFFERS,
                "RAG at least 0.85 and ReplayRet at least 0.90 are asked for",
            )
        )
    return claims


def _dominance(groups: Groups, means: Means) -> list[Claim]:
    """Whether some method without deformation beats a point of RAPO in both respects."""
    ours = {p.name: (mean_of(means[p.tasks]["RAG"]), mean_of(means[p.tasks]["ReplayRet"]))
            for p in groups["RAPO"]}  # fmt: skip
    others = {
        f"Shield {p.name}" if p.group == "Shield" else p.name:
        (mean_of(means[p.tasks]["RAG"]), mean_of(means[p.tasks]["ReplayRet"]))
        for p in (*groups["baselines"], *groups["Shield"])
    }  # fmt: skip
    if not others:
        return []
    beaten = {
        point: name
        for point, (rag, kept) in ours.items()
        for name, (r, k) in others.items()
        if r <= rag and k >= kept
    }
    lowest = min(others, key=lambda name: np.nan_to_num(others[name][0], nan=np.inf))
    return [
        Claim(
            "Trade-off",
            "RAPO's curve is better than stationary methods and shields",
            "Pareto-like curve",
            f"{len(ours) - len(beaten)} of {len(ours)} points of RAPO are beaten by none in RAG "
            "and ReplayRet at once",
            HOLDS if not beaten else DIFFERS,
            f"the lowest RAG without deformation is {lowest}'s {others[lowest][0]:.2f}"
            if not beaten
            else "; ".join(f"{name} beats {point}" for point, name in list(beaten.items())[:3]),
        )
    ]


ETA_COLOURS = ("#9ECAE1", "#5BA3CF", "#0072B2", "#08306B")
"""Light to dark blue: eta from small to large, RAPO's own colour for the default."""
MARKERS = {"GE": "o", "DR": "v", "PM-ST": "s", "PM-RNN": "D", "Shield-UM": "P"}


def _shade(eta: float, etas: Sequence[float]) -> str:
    """Blue of an eta; the default has RAPO's."""
    if eta == DEFAULT.eta:
        return ETA_COLOURS[2]
    smaller = sorted(e for e in etas if e < DEFAULT.eta)
    if eta in smaller:
        return ETA_COLOURS[max(0, 2 - len(smaller) + smaller.index(eta))]
    return ETA_COLOURS[3]


def _pareto(groups: Groups, means: Means) -> Any:
    from rapo.experiments.studies.drawing import COLOURS, new_figure, tidy

    figure, axes = new_figure(1, 3, width=12.5, height=4.6, sharey=True)
    etas = sorted({p.params.eta for p in groups["RAPO"]})

    def xy(points: Sequence[Point], metric: str) -> Any:
        return np.array(
            [[mean_of(means[p.tasks][metric]), mean_of(means[p.tasks]["ReplayRet"])]
             for p in points]
        ).reshape(-1, 2).T  # fmt: skip

    for ax, metric in zip(axes, ("RAG", "AUC_R", "SM_R"), strict=True):
        ax.axvline(1, color="#9AA0A8", lw=0.9, ls=(0, (4, 3)), zorder=0)
        for eta in etas:
            points = sorted((p for p in groups["RAPO"] if p.params.eta == eta),
                            key=lambda p: p.params.w_H)  # fmt: skip
            x, y = xy(points, metric)
            ax.plot(x, y, "o-", color=_shade(eta, etas), ms=4.5, lw=1.6, zorder=3,
                    label=f"RAPO, eta {eta:g}, along w_H")  # fmt: skip
            if eta == DEFAULT.eta and len(points) > 1 and metric == "RAG":
                for i, side in ((0, (8, -11)), (-1, (-6, -12))):
                    ax.annotate(
                        f"w_H {points[i].params.w_H:g}", (x[i], y[i]), xytext=side, fontsize=8.5,
                        textcoords="offset points", color="#3B4452",
                        ha="left" if i == 0 else "right",
                    )  # fmt: skip
        if len(groups["tau"]) > 1:
            x, y = xy(groups["tau"], metric)
            ax.plot(x, y, "^--", color="#7A5FB5", mfc="white", ms=5.5, lw=1.1, zorder=4,
                    label="RAPO, along tau")  # fmt: skip
        changed = [p for p in groups["retrained"] if p.params != DEFAULT]
        if changed:
            x, y = xy(changed, metric)
            ax.plot(x, y, "*", mfc="white", mec=COLOURS["RAPO"], ms=11, zorder=5,
                    label="RAPO trained under changed fields")  # fmt: skip
        for point in groups["baselines"]:
            x, y = xy([point], metric)
            ax.plot(x, y, MARKERS[point.name], color=COLOURS[point.name], ms=7.5, mec="white",
                    mew=0.6, zorder=6, label=point.name, ls="")  # fmt: skip
        if groups["Shield"]:
            x, y = xy(sorted(groups["Shield"], key=lambda p: p.threshold or 0), metric)
            ax.plot(x, y, "X-", color="#B5A900", mfc=COLOURS["Shield"], mec="#6E6700", ms=7,
                    lw=1.0, zorder=5, label="Shield, along its threshold")  # fmt: skip
        ax.set_xlabel(TITLES[metric])
        ax.set_xlim(left=0)
        tidy(ax)
    axes[0].set_ylabel("ReplayRet")
    figure.suptitle(
        "Return against replay: RAPO under changed fields, and methods under P0", fontsize=12
    )
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def _w_H_figure(preset: Preset, means: Means) -> Any:
    from rapo.experiments.studies.drawing import new_figure, tidy

    figure, axes = new_figure(1, 2, width=9.5, height=3.7)
    points = grid(preset)
    etas = sorted({p.params.eta for p in points})
    panels = (("RAG", "Replay by w_H and eta"), ("ReplayRet", "Return by w_H and eta"))
    for ax, (metric, title) in zip(axes, panels, strict=True):
        ax.axvline(DIMINISHING_W_H, color="#9AA0A8", lw=1, ls=":", zorder=0)
        for eta in etas:
            line = sorted((p for p in points if p.params.eta == eta), key=lambda p: p.params.w_H)
            told = [mean_interval(means[p.tasks][metric]) for p in line]
            w = [p.params.w_H for p in line]
            colour = _shade(eta, etas)
            ax.plot(w, [t.mean for t in told], "o-", color=colour, ms=4.5, lw=1.6,
                    label=f"eta {eta:g}")  # fmt: skip
            if eta == DEFAULT.eta and told[0].n >= FEW:
                ax.fill_between(w, [t.low for t in told], [t.high for t in told], color=colour,
                                alpha=0.15, lw=0)  # fmt: skip
        ax.set_xlabel("w_H")
        ax.set_ylabel(metric)
        ax.set_title(title, fontsize=11)
        tidy(ax)
    axes[0].legend(frameon=False, fontsize=9)
    return figure


def _tuning_figure(tuned: pd.DataFrame) -> Any:
    from rapo.experiments.studies.drawing import COLOURS, new_figure, tidy

    figure, ax = new_figure(1, 1, width=6.5, height=3.9)
    for _, trials in tuned.groupby("graph_seed"):
        line = trials.sort_values("threshold")
        gap = line["ReplayRet"] - line["target"]
        ax.plot(line["threshold"], gap, "o-", color=COLOURS["Shield-UM"], ms=3.5, lw=1, alpha=0.65)
        taken = line["taken"]
        ax.plot(
            line["threshold"][taken], gap[taken], "o", mfc="white", mec="#7A5200", ms=8, mew=1.5
        )
    ax.plot([], [], "o-", color=COLOURS["Shield-UM"], ms=3.5, lw=1, label="trials of one graph")
    ax.plot([], [], "o", mfc="white", mec="#7A5200", ms=8, mew=1.5, label="threshold taken")
    ax.axhline(0, color="#666666", lw=0.9)
    ax.axhspan(-0.02, 0.02, color="#EEEEEE", zorder=0, lw=0)
    ax.set_xscale("log")
    ax.set_xlabel("threshold (expected sensitive mass over the aggressive policy's)")
    ax.set_ylabel("ReplayRet less RAPO's")
    ax.set_title("Shield-UM is tuned to RAPO's return, graph by graph", fontsize=11)
    ax.legend(frameon=False, fontsize=9)
    tidy(ax)
    return figure
