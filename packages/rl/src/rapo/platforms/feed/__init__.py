"""`rapo/Feed-v0`: a recommender over real claims, some of them labelled false."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
