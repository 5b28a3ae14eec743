"""The folder of a suite's results: whose it is, what it holds, and refusing another's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rapo.agents.checkpoint import replace_text
from rapo.paper.reproduce import refuse_another_config, versions
from rapo.suite.domains import DOMAINS
from rapo.suite.piece import piece_path
from rapo.suite.policies import Given
from rapo.suite.sizes import Size
from rapo_core.checks import UserError

MADE_BY = "rapo suite run"
NAME = "manifest.json"
RESULTS = ("suite.csv", "scorecard.html", "scorecard.png", NAME)
"""Files that a run writes, and that it never takes for its own without its manifest."""


def config_of(size: Size, policy: Given, stand_in: bool) -> dict[str, Any]:
    """What all pieces of a folder share."""
    shown = {"words": policy.words or "constant", "fingerprint": policy.fingerprint}
    return {"preset": size.to_dict(), "policy": shown, "stand_in": stand_in}


def check_folder(out: Path, config: Mapping[str, Any]) -> None:
    """Refuse a folder that holds something else; writes nothing.

    Raises:
        ValueError: it holds results of another config, or of another command.
    """
    if not (out / NAME).exists():
        taken = [name for name in RESULTS if (out / name).exists()]
        if taken:
            raise UserError(
                f"{out} holds {', '.join(taken)} and no {NAME} of {MADE_BY}; choose another --out"
            )
        return
    refuse_another_config(out, manifest_of(out)["config"], config)


def note_plan(out: Path, config: Mapping[str, Any], planned: Mapping[str, Any]) -> None:
    """Write what the folder is for: domains that were planned before stay.

    Args:
        out: checked by `check_folder`.
        config: of `config_of`.
        planned: by domain: `pieces` (their keys), `observe` and `data`.
    """
    path = out / NAME
    before = manifest_of(out)["domains"] if path.exists() else {}
    content = {
        "made_by": MADE_BY,
        "config": dict(config),
        "domains": {name: {**before, **planned}[name] for name in DOMAINS
                    if name in before or name in planned},
        "versions": versions(),
    }  # fmt: skip
    replace_text(path, json.dumps(content, indent=2) + "\n")


def manifest_of(out: Path) -> dict[str, Any]:
    """The manifest of a suite's folder; a damaged one, or another command's, is named."""
    path = out / NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["made_by"] != MADE_BY:
            raise UserError(f"made by {content['made_by']}")
        if not isinstance(content["config"], dict) or not isinstance(content["domains"], dict):
            raise UserError("config and domains must be objects")
    except FileNotFoundError:
        raise UserError(f"{out} holds no suite; {MADE_BY} --out {out} makes one") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is not of {MADE_BY} ({error}); choose another --out") from error
    return dict(content)


def finished(out: Path, manifest: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Domains of which every piece is there, with the keys of these."""
    return {
        name: plan["pieces"]
        for name, plan in manifest["domains"].items()
        if all(piece_path(out, key).exists() for key in plan["pieces"])
    }
