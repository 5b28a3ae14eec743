"""`rapo/Feed-v0`: a recommender over real claims, some of them labelled false."""

from rapo.platforms.feed.claims import Claims, claims_of, stand_in
from rapo.platforms.feed.platform import Feed
from rapo.platforms.feed.setting import Setting

__all__ = ["Claims", "Feed", "Setting", "claims_of", "stand_in"]
