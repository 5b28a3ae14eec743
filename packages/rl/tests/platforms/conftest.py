"""Lets the tests of platforms import the small platforms beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
