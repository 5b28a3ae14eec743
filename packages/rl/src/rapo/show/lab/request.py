"""What the page asks for: a source, two variants and the episodes; every value is checked here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeVar

from rapo.platforms.registration import PLATFORMS
from rapo_core.checks import UserError, truth, whole_number
from rapo_core.deformation import Scope
from rapo_core.params import FieldParams

GENERATED, FILE = "generated", "file"
KINDS = (GENERATED, FILE, *PLATFORMS)
"""Kinds of sources: a generated graph, a graph from a file, or the id of a platform."""
MOST_NODES = 20_000
MOST_EPISODES = 200
MOST_SEED = 2**31 - 1
CONSTANTS = ("w_G", "w_H", "eta", "tau", "lam", "psi_min", "delta")
"""Constants that the page moves; `alpha` only sets the unit of the trace and stays."""
EPISODES = 40
"""Number of episodes unless the page asks for another."""

T = TypeVar("T")


class ControlError(UserError):
    """A value that a control of the page cannot take; the control shows the message.

    Args:
        control: name of the control.
        message: what was received and what to do.
    """

    def __init__(self, control: str, message: str) -> None:
        super().__init__(message)
        self.control = control


def blame(control: str, work: Callable[[], T]) -> T:
    """Return what `work` returns; its ValueError or OSError becomes an error of the control."""
    try:
        return work()
    except ControlError:
        raise
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise ControlError(control, message) from error
    except ValueError as error:
        raise ControlError(control, str(error)) from error


@dataclass(frozen=True)
class SourceId:
    """Which graph or platform is run."""

    kind: str = GENERATED
    """One of `KINDS`."""
    nodes: int = 250
    """Size of a generated graph."""
    seed: int = 0
    """Seed of a generated graph or of a platform."""
    path: str = ""
    """File of a graph."""

    @property
    def is_platform(self) -> bool:
        """Whether the source is a platform."""
        return self.kind in PLATFORMS

    @classmethod
    def parse(cls, request: Any) -> SourceId:
        """Read the page's request."""
        fields = _mapping("source", request, set(cls.__dataclass_fields__))
        kind = fields.get("kind", GENERATED)
        if kind not in KINDS:
            raise ControlError("source", f"source must be one of {', '.join(KINDS)}, got {kind!r}")
        if kind == FILE:
            path = fields.get("path", "")
            if not isinstance(path, str) or not path.strip():
                raise ControlError("path", f"name a .npz, CSV or GraphML file, got {path!r}")
            return cls(FILE, path=path.strip())
        seed = _whole("graph_seed", fields.get("seed", 0), 0, MOST_SEED)
        if kind != GENERATED:
            return cls(kind, seed=seed)
        return cls(kind, _whole("nodes", fields.get("nodes", 250), 20, MOST_NODES), seed)


@dataclass(frozen=True)
class Variant:
    """One of the two settings that the page compares."""

    params: FieldParams
    regions: str = ""
    """Region spec of a graph; empty on a platform, which has its own regions."""
    scope: str = "full"
    """Where the kernel is deformed."""
    policy: str = "aggressive"
    """Name of a constant action, or path of a run or of a saved model."""

    @classmethod
    def parse(cls, request: Any, params: FieldParams) -> Variant:
        """Read the page's request; constants that it leaves out are those of `params`."""
        fields = _mapping("variant", request, set(cls.__dataclass_fields__))
        for name, value in _mapping("params", fields.get("params", {}), set(CONSTANTS)).items():
            params = blame(name, partial(replace, params, **{name: value}))
        texts = {}
        for name, default in (("regions", ""), ("scope", "full"), ("policy", "aggressive")):
            text = fields.get(name, default)
            if not isinstance(text, str) or len(text) > 500:
                raise ControlError(name, f"{name} must be a short text, got {text!r:.80}")
            texts[name] = text.strip()
        texts["scope"] = blame("scope", lambda: str(Scope.parse(texts["scope"])))
        return cls(params, **texts)

    @property
    def nominal(self) -> Variant:
        """The same variant under `P0`."""
        return replace(self, scope="off")

    @property
    def without_psi(self) -> Variant:
        """The same variant with neutral values of the constants that only psi uses."""
        return replace(self, params=replace(self.params, w_G=0.0, w_H=0.0, psi_min=1.0))

    def to_dict(self) -> dict[str, Any]:
        """The request that `parse` reads."""
        return asdict(self) | {"params": {name: getattr(self.params, name) for name in CONSTANTS}}


@dataclass(frozen=True)
class Episodes:
    """Which episodes are run."""

    count: int = EPISODES
    seed: int = 0
    """Seed of the first episode."""
    stimulus: int = 0
    """1-based; 0 draws one for every episode."""
    coupled: bool = False
    """Whether Replay reuses the draws of Exposure."""
    shown: int = 0
    """Number of the episode whose film is shown."""

    @classmethod
    def parse(cls, request: Any, stimuli: int) -> Episodes:
        """Read the page's request, for a source with that many stimuli."""
        fields = _mapping("episodes", request, set(cls.__dataclass_fields__))
        count = _whole("episodes", fields.get("count", EPISODES), 2, MOST_EPISODES)
        return cls(
            count,
            _whole("seed", fields.get("seed", 0), 0, MOST_SEED),
            _whole("stimulus", fields.get("stimulus", 0), 0, stimuli),
            blame("coupled", lambda: truth("coupled", fields.get("coupled", False))),
            _whole("shown", fields.get("shown", 0), 0, count - 1),
        )

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `rapo.rsd.evaluate`."""
        return {
            "episodes": self.count,
            "seed": self.seed,
            "coupled": self.coupled,
            "stimuli": self.stimulus or None,
        }


def _whole(control: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return blame(control, lambda: whole_number(control, value, least, most))


def _mapping(control: str, request: Any, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(request, Mapping) or set(request) - known:
        raise ControlError(control, f"{control} has {sorted(known)}, got {request!r:.200}")
    return request
