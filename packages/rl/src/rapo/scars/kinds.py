"""The kinds of scar fields by name, for configurations and command lines."""

from __future__ import annotations

from typing import Any

from rapo.scars.density import DensityField
from rapo.scars.field import ScarField
from rapo.scars.grid import GridField
from rapo.scars.kernel import KernelField
from rapo.scars.network import NetworkField
from rapo_core.checks import UserError
from rapo_core.params import FieldParams

KINDS: dict[str, type[ScarField]] = {
    "kernel": KernelField,
    "grid": GridField,
    "density": DensityField,
    "network": NetworkField,
}
"""Name and class of every kind."""


def make(kind: str, box: Any, params: FieldParams | None = None, **options: Any) -> ScarField:
    """Make a field by name; options are those of its class.

    >>> make("kernel", [(0, 1)], centres=16).numbers
    48
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise UserError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    return KINDS[kind](box, params, **options)
