"""Which budgets training met, and at what price: the duals at its end."""

from __future__ import annotations

import numpy as np
import pandas as pd


def printed_budgets(found: pd.DataFrame) -> pd.DataFrame:
    """Means over graphs, a row per method and cost, in the order of `found`."""
    rows = []
    for (method, cost), part in found.groupby(["method", "cost"], sort=False):
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


def idle(found: pd.DataFrame, method: str) -> bool:
    """Whether a method met its budgets everywhere with duals at 0: nothing was constrained."""
    part = found[found["method"] == method] if len(found) else found
    return len(part) > 0 and bool(part["met"].all()) and float(np.max(part["dual"])) < 1e-6
