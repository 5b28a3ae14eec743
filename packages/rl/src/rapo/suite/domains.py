"""The domains of the suite: one entry each says what is run and what its numbers mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rapo.envs.episodes import EpisodesVectorEnv
from rapo.names import import_named
from rapo.platforms.data import STAND_IN
from rapo.platforms.vector import PlatformVectorEnv
from rapo_core.checks import UserError


@dataclass(frozen=True)
class Baseline:
    """What the field does about harm without a harm memory."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the environment."""
    policy: str = ""
    """`module:Class` of a policy that acts in place of the one scored; default that one."""


def no_data(stand_in: bool) -> dict[str, Any]:
    """Of a domain that reads nothing: it is generated anyway."""
    return {}


def named_data(stand_in: bool) -> dict[str, Any]:
    """Of a platform with an option `data`."""
    return {"data": STAND_IN if stand_in else "real"}


@dataclass(frozen=True)
class Domain:
    """A platform, the constant action that is scored by default, and what is asked of RAPO."""

    name: str
    env: str
    """Gymnasium id, as agents are trained on it."""
    made_by: str
    """`module:Class` of a `BatchPlatform`, or of a vector environment."""
    action: int
    """Constant action that is scored unless a policy is given."""
    baselines: tuple[Baseline, ...]
    reach: str
    sensitive: str
    returns: str
    """What reach, sensitive mass and return count."""
    data: Callable[[bool], dict[str, Any]] = no_data
    """Options that choose real data (False) or the stand-in (True)."""
    seed: str = "seed"
    """Option that chooses the platform."""
    SM_R: float = 0.75
    """At most, of RAPO."""
    SM_vs_P0: float = 0.6
    """At most, of RAPO."""

    def make(self, seed: int, stand_in: bool, **options: Any) -> EpisodesVectorEnv:
        """The environment of a platform seed.

        Args:
            seed: of the platform.
            stand_in: run on generated data in place of the real ones.
            options: of the environment and of the platform.
        """
        chosen = {self.seed: seed, **self.data(stand_in), **options}
        made: Any = import_named(self.made_by, "platform")
        if issubclass(made, EpisodesVectorEnv):
            env: EpisodesVectorEnv = made(1, **chosen)
            return env
        return PlatformVectorEnv(1, platform=made, **chosen)


DOMAINS = {
    domain.name: domain
    for domain in (
        Domain(
            name="cascade",
            env="rapo/GraphDiffusion-v0",
            made_by="rapo.envs.vector:GraphDiffusionVectorEnv",
            seed="graph_seed",
            action=0,
            baselines=(
                Baseline(
                    "transient throttle",
                    {"deformation": "off"},
                    "rapo.suite.throttling:ThrottlePolicy",
                ),
            ),
            reach="active nodes",
            sensitive="active nodes of V_sens",
            returns="injections served, and a little for activity outside V_sens",
        ),
        Domain(
            name="feed",
            env="rapo/Feed-v0",
            made_by="rapo.platforms.feed:Feed",
            data=named_data,
            action=4,
            baselines=(
                Baseline("false rate, recent", {"kernel": "false-rate"}),
                Baseline(
                    "false rate, all time",
                    {"kernel": "false-rate", "setting": {"rate_window": 1e9}},
                ),
            ),
            reach="users on the pushed channel",
            sensitive="users on claims labelled false",
            returns="engagement",
        ),
        Domain(
            name="routing",
            env="rapo/Routing-v0",
            made_by="rapo.platforms.routing:Routing",
            data=named_data,
            action=1,
            baselines=(Baseline("route-flap damping", {"kernel": "damping"}),),
            reach="flows in flight",
            sensitive="flows on grey links",
            returns="goodput",
        ),
        Domain(
            name="warehouse",
            env="rapo/Warehouse-v0",
            made_by="rapo.platforms.warehouse:Warehouse",
            data=named_data,
            action=2,
            baselines=(Baseline("zone lock-out by timer", {"kernel": "lockout"}),),
            reach="stopped robots",
            sensitive="robots in hazard zones",
            returns="deliveries",
        ),
        Domain(
            name="twin",
            env="rapo/Twin-v0",
            made_by="rapo.platforms.twin:Twin",
            action=4,
            baselines=(Baseline("fixed high-temperature trip", {"kernel": "trip"}),),
            reach="units above 388 K",
            sensitive="units above 394 K",
            returns="conversion",
            SM_R=0.9,
            SM_vs_P0=0.8,
        ),
    )
}
"""By name, in the order of the scorecard."""


def chosen_domains(words: str) -> list[Domain]:
    """Domains from `all` or names with commas between, in the table's order.

    Raises:
        ValueError: one that is not in the table.
    """
    if words.strip() == "all":
        return list(DOMAINS.values())
    names = [word.strip() for word in words.split(",")]
    for name in names:
        if name not in DOMAINS:
            raise UserError(f"no domain is called {name!r}; known are {', '.join(DOMAINS)}, all")
    return [domain for name, domain in DOMAINS.items() if name in names]
