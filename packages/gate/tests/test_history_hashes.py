"""The fields of generated histories are, bit for bit, those that were computed before.

`history_hashes.json` has one hash for each seed, over 100 histories: fields and psi after every
operation. A test run checks a few seeds. `python packages/gate/tests/test_history_hashes.py` checks
all of them in about five minutes, and `… --renew` computes them anew, which only a change that is
meant to alter the fields may do.
"""

from __future__ import annotations

import json
import runpy
import sys
from hashlib import sha256
from pathlib import Path

import pytest

HISTORIES = runpy.run_path(str(Path(__file__).with_name("test_histories.py")))
FILE = Path(__file__).with_name("history_hashes.json")
SEEDS, EACH = 100, 100


def hash_of(seed: int) -> str:
    """Hash of all histories of a seed."""
    total = sha256()
    for i in range(EACH):
        _, _, player, _ = HISTORIES["generated"](seed, i)
        total.update(player.course.digest())
    return total.hexdigest()


@pytest.mark.parametrize("seed", [0, 5, 81])
def test_fields_are_those_of_before(seed: int) -> None:
    assert hash_of(seed) == json.loads(FILE.read_text())[seed]


if __name__ == "__main__":
    hashes = [hash_of(seed) for seed in range(SEEDS)]
    if sys.argv[1:] == ["--renew"]:
        FILE.write_text(json.dumps(hashes, indent=0) + "\n")
        print(f"wrote {FILE}")
    else:
        expected = json.loads(FILE.read_text())
        differ = [seed for seed in range(SEEDS) if hashes[seed] != expected[seed]]
        print(f"{SEEDS * EACH} histories: {f'seeds {differ} differ' if differ else 'all the same'}")
        sys.exit(bool(differ))
