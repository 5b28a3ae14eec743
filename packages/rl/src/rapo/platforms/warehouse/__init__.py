"""Warehouse: robots on routes over a real floor with hidden hazards."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
