"""How large a reproduction is: the paper's size, a quarter of an hour, or two minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rapo.agents.config import PPOConfig
from rapo.agents.methods import METHODS
from rapo.agents.run_config import RunConfig, graph_run
from rapo.cascade.setting import Setting
from rapo.paper.jobs import Evaluation, Policy
from rapo_core.checks import UserError
from rapo_core.params import FieldParams


@dataclass(frozen=True)
class Preset:
    """Sizes of every study, with the platform and PPO's numbers that all of them share."""

    name: str
    nodes: int = 250
    graph_seeds: tuple[int, ...] = tuple(range(10))
    steps: int = 2_000_000
    episodes: int = 20
    methods: tuple[str, ...] = ("GE", "DR", "Shield-UM", "PM-ST", "PM-RNN", "RAPO", "off@rep")
    """Rows of Table 1."""
    sizes: tuple[int, ...] = (50, 100, 250, 500, 1000)
    size_seeds: tuple[int, ...] = tuple(range(10))
    """Graphs a size; each is trained at every size."""
    size_steps: int = 400_000
    """Training steps of the size study; RAPO is flat from 2e5 on."""
    as_many: tuple[int, ...] = (500, 1000)
    """Sizes whose row has as many regions as the main size has; with regions as large as there the
    same harm is spread over more of them, which is a second table."""
    w_H: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
    eta: tuple[float, ...] = (0.01, 0.025, 0.05, 0.1)
    tau: tuple[float, ...] = (0.15, 0.3, 0.45, 0.6)
    retrained: tuple[tuple[str, float], ...] = (("w_H", 0.5), ("w_H", 4.0), ("eta", 0.01))
    """Points of the trade-off that are also trained anew."""
    sweep_seeds: tuple[int, ...] = tuple(range(10))
    retrain_seeds: tuple[int, ...] = (0, 1, 2)
    retrain_steps: int = 400_000
    delta: tuple[float, ...] = (0.95, 0.99, 0.995, 0.999)
    topk: tuple[int, ...] = (2, 4, 8, 16)
    local: tuple[float, ...] = (0.25, 0.5, 0.75)
    region_sizes: tuple[str, ...] = ("node", "community:2", "community:6", "community:10")
    misattributed: tuple[float, ...] = (0.1, 0.25, 0.5)
    """Shares of the sensitive nodes whose harm is credited to a wrong region."""
    unreported: tuple[float, ...] = (0.1, 0.25, 0.5)
    """Shares of the harm that nobody reports."""
    thresholds: tuple[float, ...] = (0.2, 0.5, 0.8, 0.95, 1.1)
    """Of the fixed Shield, for the trade-off."""
    literal_seeds: tuple[int, ...] = tuple(range(5))
    """Graphs of the literal dual rule, without budgets."""
    literal_steps: int = 800_000
    spread_seeds: tuple[int, ...] = (0, 1, 2)
    """Graphs on which the optimiser starts from several seeds."""
    starts: int = 3
    """Seeds of the optimiser there."""
    reading_seeds: tuple[int, ...] = tuple(range(5))
    """Graphs on which the readings of the paper stand side by side."""
    reading_steps: int = 800_000
    networks: tuple[str, ...] = ()
    """Keys of the networks that nothing was tuned for; without any, all of the catalogue."""
    network_steps: int = 400_000
    network_episodes: int = 40
    data: str = "../shared/data"
    """Folder of the real networks. The jobs depend on the contents of its files, not on its name,
    so that the name is no part of what a folder of results holds."""
    seed_per_graph: bool = True
    """Whether the seed of the optimiser is that of the graph, or 0 on all of them."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    setting: Setting = field(default_factory=Setting.default)

    @property
    def params(self) -> FieldParams:
        """Constants of the fields, those of the setting."""
        return self.config("RAPO", 0).params

    def config(self, method: str, graph_seed: int, **changes: Any) -> RunConfig:
        """The training of one method on one graph of the main size."""
        whole: dict[str, Any] = {
            "nodes": self.nodes,
            "steps": self.steps,
            "ppo": self.ppo,
            "setting": self.setting,
            "seed": graph_seed if self.seed_per_graph else 0,
            **changes,
        }
        return graph_run(method, graph_seed=graph_seed, **whole)

    def policy(self, method: str, graph_seed: int, **changes: Any) -> Policy:
        """The policy that a method of the tables evaluates; Shield-UM has one of its own."""
        row = METHODS[method]
        own = row.policy_of is None or row.shield == "matched"
        return Policy(self.config(method if own else str(row.policy_of), graph_seed, **changes))

    def evaluation(self, method: str, graph_seed: int, **options: Any) -> Evaluation:
        """A method of the tables on one graph of the main size."""
        policy = self.policy(method, graph_seed)
        return Evaluation(policy, method, episodes=self.episodes, **options)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with everything that results depend on."""
        values = {
            **asdict(self),
            "setting": self.setting.to_dict(),
            "params": self.params.to_dict(),
        }
        del values["data"]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Preset:
        """The preset of a folder, from its manifest."""
        plain: dict[str, Any] = {
            name: tuple(map(_immutable, value)) if isinstance(value, list) else value
            for name, value in values.items()
            if name != "params"
        }
        parts = {
            "ppo": PPOConfig(**values["ppo"]),
            "setting": Setting.from_dict(values["setting"]),
        }
        preset = cls(**plain | parts)
        if preset.params != FieldParams.from_dict(values["params"]):
            raise UserError(f"its params {values['params']} are not those of its setting")
        return preset


def _immutable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


PAPER = Preset("paper")
QUICK = replace(
    PAPER,
    name="quick",
    graph_seeds=(0, 1, 2),
    steps=120_000,
    sizes=(50, 100, 250),
    size_seeds=(0, 1),
    size_steps=60_000,
    as_many=(),
    w_H=(0.5, 2.0, 4.0),
    eta=(0.01, 0.05, 0.1),
    tau=(0.15, 0.3, 0.6),
    retrained=(("w_H", 4.0),),
    sweep_seeds=(0, 1, 2),
    retrain_seeds=(0,),
    retrain_steps=60_000,
    delta=(0.95, 0.999),
    topk=(4, 8),
    local=(0.25, 0.75),
    region_sizes=("node", "community:6"),
    misattributed=(0.25, 0.5),
    unreported=(0.25, 0.5),
    thresholds=(0.5, 0.95),
    literal_seeds=(0,),
    literal_steps=60_000,
    spread_seeds=(0, 1),
    starts=2,
    reading_seeds=(0, 1),
    reading_steps=60_000,
    network_steps=60_000,
    network_episodes=20,
)
SMOKE = replace(
    QUICK,
    name="smoke",
    nodes=60,
    graph_seeds=(0,),
    steps=40_000,
    episodes=20,
    methods=("GE", "PM-ST", "RAPO", "off@rep"),
    sizes=(50,),
    size_seeds=(0,),
    size_steps=8_192,
    w_H=(0.5, 4.0),
    eta=(0.05,),
    tau=(0.3,),
    retrained=(),
    sweep_seeds=(0,),
    delta=(0.999,),
    topk=(8,),
    local=(0.5,),
    region_sizes=("node",),
    misattributed=(0.5,),
    unreported=(0.5,),
    thresholds=(0.5,),
    retrain_steps=8_192,
    literal_steps=8_192,
    spread_seeds=(0,),
    reading_seeds=(0,),
    reading_steps=8_192,
    networks=("karate", "generated-50"),
    network_steps=8_192,
    network_episodes=4,
)
PRESETS = {preset.name: preset for preset in (SMOKE, QUICK, PAPER)}


def preset_named(name: str) -> Preset:
    """A preset by its name."""
    if name not in PRESETS:
        raise UserError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")
    return PRESETS[name]
