"""Tables of budgets: what training spent at its end, the budget, and the dual."""

from __future__ import annotations

import numpy as np
import pandas as pd


def printed_budgets(paid: pd.DataFrame) -> pd.DataFrame:
    """Means over graphs as a table to print, a row per method and cost.

    Args:
        paid: a row per training and cost, see `Results.budgets`.
    """
    rows = []
    for (method, cost), part in paid.groupby(["method", "cost"], sort=False):
        rows.append(
            {
                "method": method,
                "cost": cost,
                "spent at the end of training": f"{part['spent'].mean():.2f}",
                "budget": f"{part['budget'].mean():.2f}",
                "dual": f"{part['dual'].mean():.2f} (largest {part['dual'].max():.2f})",
                "met": f"{int(part['met'].sum())} of {len(part)} graphs",
            }
        )
    return pd.DataFrame(rows)


def idle(paid: pd.DataFrame, method: str) -> bool:
    """Whether no budget constrained a method: it met all of them with duals of 0."""
    part = paid[paid["method"] == method] if len(paid) else paid
    return len(part) > 0 and bool(part["met"].all()) and float(np.max(part["dual"])) < 1e-6
