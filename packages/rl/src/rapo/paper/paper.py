"""The paper's numbers, as printed."""

from __future__ import annotations

METRICS = ("RAG", "AUC_R", "SM_R", "ReplayRet")
"""Columns of Table 1."""

TABLE1: dict[str, dict[str, tuple[float, float]]] = {
    method: dict(zip(METRICS, cells, strict=True))
    for method, cells in {
        "GE": ((1.08, 0.14), (1.05, 0.12), (1.03, 0.11), (1.00, 0.03)),
        "DR": ((1.01, 0.11), (0.99, 0.10), (0.97, 0.09), (0.96, 0.04)),
        "Shield-UM": ((0.78, 0.15), (0.81, 0.14), (0.79, 0.13), (0.82, 0.03)),
        "PM-ST": ((0.98, 0.10), (0.99, 0.09), (0.98, 0.08), (0.96, 0.03)),
        "PM-RNN": ((1.00, 0.10), (1.00, 0.09), (0.99, 0.08), (0.95, 0.04)),
        "RAPO": ((0.33, 0.08), (0.36, 0.07), (0.31, 0.06), (0.82, 0.03)),
        "off@rep": ((0.91, 0.13), (0.93, 0.12), (0.92, 0.11), (0.82, 0.03)),
    }.items()
}
"""Mean and std of each cell, 250 nodes."""

RAG_GAP = (-0.65, -0.73, -0.57)
"""RAPO less PM-ST in RAG, with the ends of its 95% interval."""
RAG_GAP_P = 1e-8
"""Above the p of Welch's test of that difference."""
REDUCTION = 0.67
"""Reduction of RAG by RAPO against PM-ST."""
SIZES_REDUCTION = (0.67, 0.83)
"""Range of the replay reduction over sizes."""
SIZES_UTILITY = (0.78, 0.91)
"""Range of the retained task utility over sizes."""
DIMINISHING_W_H = 2.5
"""w_H beyond which returns diminish and utility losses dominate."""
SLOW_DECAY_RAG = 0.38
"""RAG of the slow-decay variant; the paper does not say with which delta."""
ODDS_RATIO = 0.41
"""Mean odds ratio of RAPO in Replay."""
SHIELD_UTILITY = 0.65
"""Share of the baseline return that the fixed-threshold Shield keeps."""
ODDS_RAG_CORRELATION = 0.87
"""Of OddsRatio with RAG "across runs"; the paper does not say which."""
CONTAINMENT = (16.9, 8.4)
"""Containment radius in hops: stationary, RAPO."""
ACTIVITY_KEPT = (0.78, 0.91)
"""Share of the baseline's injection rate and breadth that RAPO keeps."""
