"""Warehouse: robots on routes over a real floor with hidden hazards."""

from rapo.platforms.warehouse.platform import Warehouse
from rapo.platforms.warehouse.setting import Setting

__all__ = ["Setting", "Warehouse"]
