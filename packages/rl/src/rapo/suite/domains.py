"""The domains of the suite: the paper's cascade and every platform of the package."""

from __future__ import annotations

from rapo.platforms.cascade.entry import CASCADE
from rapo.platforms.entry import Entry
from rapo.platforms.registration import PLATFORMS
from rapo_core.checks import UserError

DOMAINS: dict[str, Entry] = {entry.name: entry for entry in (CASCADE, *PLATFORMS.values())}
"""Domains by name, in the order of the scorecard."""


def domains_named(names: str) -> list[Entry]:
    """Return the domains of `all`, or of names with commas between, in the scorecard's order.

    Raises:
        UserError: there is no such domain.
    """
    if names.strip() == "all":
        return list(DOMAINS.values())
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in DOMAINS:
            raise UserError(f"no domain is called {name!r}; choose of {', '.join(DOMAINS)}, or all")
    return [domain for name, domain in DOMAINS.items() if name in wanted]
