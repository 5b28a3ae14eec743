"""`Section`: tables, figures and claims of a study, one section of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from rapo.html import page
from rapo.paper.studies.verdicts import Claim


@dataclass(frozen=True)
class Section(page.Section):
    """A study's part of the report; `name` is that of the study and of its files."""

    claims: Sequence[Claim] = ()
    files: dict[str, pd.DataFrame] = field(default_factory=dict)
    """CSV files by name, without the ending."""
