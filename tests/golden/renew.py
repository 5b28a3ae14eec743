"""Write the files of golden checks anew: `python tests/golden/renew.py NAME...`.

Only for a change that is meant to alter a number. The new files are committed together with that
change, and the message of the commit gives the reason. `training` keeps the hashes of other
machines if the statistics of the weights are the same as before, else it drops them.
"""

from __future__ import annotations

import json
import runpy
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(names: list[str]) -> None:
    """Compute the files of the named checks and replace what is committed."""
    golden = runpy.run_path(str(HERE / "test_golden.py"))
    checks = golden["CHECKS"]
    if not names or not set(names) <= set(checks):
        sys.exit(f"usage: renew.py NAME..., where a NAME is one of {', '.join(checks)}")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            files = checks[name](Path(folder))
        if name == "training" and committed("weights.csv") == files["weights.csv"]:
            hashes = json.loads(committed("weights.json")) | json.loads(files["weights.json"])
            files["weights.json"] = golden["json_text"](hashes)
        for file, text in files.items():
            (HERE / file).write_text(text, encoding="utf-8")
            print(f"wrote {file}")


def committed(file: str) -> str:
    """Text of a file beside this one; empty if there is none."""
    path = HERE / file
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    main(sys.argv[1:])
