"""Checkpoints: one file that holds a policy, what it was trained on, and how to go on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rapo_core.checks import UserError
from rapo_core.version import VERSION

FORMAT = 2
"""Of the file; another one is refused."""
_PARTS = ("method", "config", "graph_hash", "model", "learner")
"""Without these there is no policy."""


def save_checkpoint(path: Path, content: Mapping[str, Any]) -> None:
    """Write `content` (numbers, words, arrays, tensors, nested dicts).

    A kill at any moment leaves either the old file or the new one.
    """
    packed = _packed({**content, "format": FORMAT, "version": VERSION})
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        torch.save(packed, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def load_checkpoint(path: Path | str) -> dict[str, Any]:
    """Read what `save_checkpoint` wrote; arrays come back as tensors.

    Raises:
        ValueError: it is not such a file, or of another format.
    """
    path = Path(path)
    if not path.is_file():
        remedy = "rapo train METHOD --out makes one"
        if (path.parent / "config.json").exists():
            remedy = "the run there was cut before its first one; rapo train goes on with --resume"
        raise UserError(f"there is no checkpoint at {path}; {remedy}")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # zip, pickle and torch each have their own
        raise UserError(f"{path} is damaged, or not a checkpoint of rapo") from error
    if not isinstance(content, dict) or "format" not in content:
        raise UserError(f"{path} is not a checkpoint of rapo")
    lost = [name for name in _PARTS if name not in content]
    if content["format"] == FORMAT and lost:
        raise UserError(f"{path} is damaged: it lacks {', '.join(lost)}")
    if content["format"] != FORMAT:
        raise UserError(
            f"{path} has checkpoint format {content['format']} (rapo {content.get('version')}), "
            f"this rapo {VERSION} reads format {FORMAT}; train it again"
        )
    return content


def replace_text(path: Path, text: str) -> None:
    """Write a text file so that a kill leaves the old one or the new one."""
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _packed(value: Any) -> Any:
    """Arrays as tensors, words out of 0-d arrays: what torch loads without running code."""
    if isinstance(value, Mapping):
        return {name: _packed(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(part) for part in value]
    if isinstance(value, np.ndarray):
        return str(value) if value.dtype.kind == "U" else torch.from_numpy(value.copy())
    if isinstance(value, np.generic):
        return value.item()
    return value


def unpacked(state: Mapping[str, Any]) -> dict[str, Any]:
    """A snapshot's arrays from its packed form."""
    return {
        name: part.numpy() if isinstance(part, torch.Tensor) else np.array(part)
        for name, part in state.items()
    }
