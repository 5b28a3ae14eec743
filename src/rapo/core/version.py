"""The version of the installed package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("rapo")
except PackageNotFoundError:  # a source tree that is not installed
    VERSION = "0+unknown"
