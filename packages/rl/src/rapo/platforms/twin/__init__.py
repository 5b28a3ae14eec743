"""The twin: units of a stirred reactor, the coolant they get, and what a hot one suffers."""

from rapo.platforms.twin.platform import FIELDS, Twin
from rapo.platforms.twin.setting import Setting

__all__ = ["FIELDS", "Setting", "Twin"]
