"""Routing: flows on paths through real networks with grey links."""

from rapo.platforms.routing.platform import Routing
from rapo.platforms.routing.setting import Setting

__all__ = ["Routing", "Setting"]
