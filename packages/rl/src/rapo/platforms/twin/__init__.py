"""The twin: units of a stirred reactor, the coolant they get, and what a hot one suffers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
