"""What the page asks for: where, under which two settings, with which episodes. Checked here."""

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
MOST_NODES = 20_000
MOST_EPISODES = 200
MOST_SEED = 2**31 - 1
CONSTANTS = ("w_G", "w_H", "eta", "tau", "lam", "psi_min", "delta")
"""Constants that the page moves; `alpha` only sets the unit of the trace and stays."""
EPISODES = 40

T = TypeVar("T")


class ControlError(UserError):
    """A value that a control does not take.

    Args:
        control: name of the control, which says why and stays as it is.
        words: what was received and what to do.
    """

    def __init__(self, control: str, words: str) -> None:
        super().__init__(words)
        self.control = control


def blamed(control: str, work: Callable[[], T]) -> T:
    """What `work` gives; a ValueError or a missing file becomes one of the control."""
    try:
        return work()
    except ControlError:
        raise
    except OSError as error:
        words = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise ControlError(control, words) from error
    except ValueError as error:
        raise ControlError(control, str(error)) from error


@dataclass(frozen=True)
class Place:
    """What is run on: a generated graph, a graph of a file, or a platform by its id."""

    kind: str = GENERATED
    nodes: int = 250
    seed: int = 0
    """Of the generated graph, or of the platform."""
    path: str = ""

    @property
    def is_platform(self) -> bool:
        """Whether it is one of `PLATFORMS`."""
        return self.kind in PLATFORMS

    @classmethod
    def of(cls, given: Any) -> Place:
        """From the page's words."""
        words = _mapping("place", given, {"kind", "nodes", "seed", "path"})
        kind = words.get("kind", GENERATED)
        if kind not in (GENERATED, FILE, *PLATFORMS):
            known = ", ".join((GENERATED, FILE, *PLATFORMS))
            raise ControlError("place", f"place must be one of {known}, got {kind!r}")
        if kind == FILE:
            path = words.get("path", "")
            if not isinstance(path, str) or not path.strip():
                raise ControlError("path", f"name a .npz, CSV or GraphML file, got {path!r}")
            return cls(FILE, path=path.strip())
        seed = _whole("graph_seed", words.get("seed", 0), 0, MOST_SEED)
        if kind != GENERATED:
            return cls(kind, seed=seed)
        return cls(kind, _whole("nodes", words.get("nodes", 250), 20, MOST_NODES), seed)


@dataclass(frozen=True)
class Side:
    """One of the two settings."""

    params: FieldParams
    regions: str = ""
    """Region spec; empty on a platform, which has its own."""
    scope: str = "full"
    policy: str = "aggressive"

    @classmethod
    def of(cls, given: Any, before: FieldParams) -> Side:
        """From the page's words; constants that it does not move are those of `before`."""
        words = _mapping("setting", given, {"params", "regions", "scope", "policy"})
        constants = _mapping("params", words.get("params", {}), set(CONSTANTS))
        params = before
        for name, value in constants.items():
            params = blamed(name, partial(replace, params, **{name: value}))
        texts = {}
        for name, default in (("regions", ""), ("scope", "full"), ("policy", "aggressive")):
            text = words.get(name, default)
            if not isinstance(text, str) or len(text) > 500:
                raise ControlError(name, f"{name} must be a short text, got {text!r:.80}")
            texts[name] = text.strip()
        texts["scope"] = blamed("scope", lambda: str(Scope.parse(texts["scope"])))
        return cls(params, **texts)

    @property
    def nominal(self) -> Side:
        """The same without its gate."""
        return replace(self, scope="off")

    @property
    def without_psi(self) -> Side:
        """The same but for what only psi reads."""
        return replace(self, params=replace(self.params, w_G=0.0, w_H=0.0, psi_min=1.0))

    def to_dict(self) -> dict[str, Any]:
        """As the page sends it."""
        whole = asdict(self)
        whole["params"] = {name: getattr(self.params, name) for name in CONSTANTS}
        return whole


@dataclass(frozen=True)
class Draws:
    """Which episodes are run."""

    episodes: int = EPISODES
    seed: int = 0
    stimulus: int = 0
    """1-based; 0 draws one for every episode."""
    coupled: bool = False
    shown: int = 0
    """Number of the episode whose film is shown."""

    @classmethod
    def of(cls, given: Any, stimuli: int) -> Draws:
        """From the page's words, for a place with so many stimuli."""
        words = _mapping("draws", given, set(cls.__dataclass_fields__))
        episodes = _whole("episodes", words.get("episodes", EPISODES), 2, MOST_EPISODES)
        return cls(
            episodes,
            _whole("seed", words.get("seed", 0), 0, MOST_SEED),
            _whole("stimulus", words.get("stimulus", 0), 0, stimuli),
            blamed("coupled", lambda: truth("coupled", words.get("coupled", False))),
            _whole("shown", words.get("shown", 0), 0, episodes - 1),
        )

    @property
    def which(self) -> tuple[int, int, int, bool]:
        """What the numbers depend on: all but which episode is shown."""
        return self.episodes, self.seed, self.stimulus, self.coupled

    @property
    def options(self) -> dict[str, Any]:
        """Of `rapo.rsd.evaluate`."""
        return {
            "episodes": self.episodes,
            "seed": self.seed,
            "coupled": self.coupled,
            "stimuli": self.stimulus or None,
        }


def _whole(control: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return blamed(control, lambda: whole_number(control, value, least, most))


def _mapping(control: str, given: Any, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or set(given) - known:
        raise ControlError(control, f"{control} has {sorted(known)}, got {given!r:.200}")
    return given
