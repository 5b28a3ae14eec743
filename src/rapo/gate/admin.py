"""What administrators do to a gate: mode, settings, labels; each declared once, as in `actions`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from rapo.gate.config import FIXED, GateConfig
from rapo.gate.declare import LABELS, Action, Given, Kind, action, known_region, real_in
from rapo.gate.events import Region, checked_word
from rapo.gate.format import number, setting, some_names
from rapo.gate.state import State

Values = dict[str, Any]


@action(
    "mode", "/v1/mode", scope="admin", event="ConfigChange", part="mode", verb="Change the mode"
)
@dataclass(frozen=True)
class Mode(Action):
    """`shadow` computes and logs; `enforce` serves the gated law to `percent` of decisions."""

    mode: Annotated[
        str, Given(Kind.CHOICE, "Compute and log, or serve.", choices=("shadow", "enforce"))
    ]
    percent: Annotated[
        float, Given(Kind.REAL, "Share of decisions to enforce, in percent.", low=0, high=100)
    ] = 100.0
    reason: str = field(default="set by program", kw_only=True)

    def body(self, state: State, now: float) -> Values:
        """One of the two, and a percentage."""
        if self.mode not in ("shadow", "enforce"):
            raise ValueError(f"mode must be 'shadow' or 'enforce', got {self.mode!r}")
        return {"mode": self.mode, "percent": real_in("percent", self.percent, 0, 100)}

    def title(self) -> str:
        """What is proposed."""
        if self.mode == "enforce":
            return f"Enforce for {number(self.percent)} % of decisions"
        return "Go back to shadow mode"

    def meaning(self, config: GateConfig) -> str:
        """What decisions are answered with."""
        if self.mode == "enforce":
            return "These decisions are answered with the gated law; the others as proposed."
        return "Decisions are computed and logged, and answered as proposed."

    @classmethod
    def told(cls, data: Values, before: Values) -> str:
        """Mode and percentage."""
        if data["mode"] == "shadow":
            return "Mode: shadow"
        return f"Mode: enforce for {number(data['percent'])} % of decisions"


@action(
    "configure", "/v1/config", scope="admin", event="ConfigChange", part="config",
    verb="Change the settings",
)  # fmt: skip
@dataclass(frozen=True)
class Configure(Action):
    """Change settings from the next tick on; those that ticks hang on cannot change."""

    changes: Annotated[dict[str, Any], Given(Kind.SETTINGS, "As min_sources=5 or params.w_H=4.")]

    def body(self, state: State, now: float) -> Values:
        """Settings that are whole and sound once changed; the fixed ones as they were."""
        changes, old = self.changes, state.config.to_dict()
        if not isinstance(changes, dict) or not changes:
            raise ValueError(f"changes must be settings and their values, got {changes!r:.80}")
        new = {**old, **changes}
        if isinstance(changes.get("params"), dict):
            new["params"] = {**old["params"], **changes["params"]}
        after = GateConfig.from_dict(new).to_dict()
        for name in FIXED:
            if after[name] != old[name]:
                raise ValueError(
                    f"{name} cannot change: ticks in the log would mean something else; "
                    f"make a new gate, or keep {old[name]}"
                )
        return {"config": after}

    def title(self) -> str:
        """What is proposed."""
        words = ", ".join(f"{k} = {setting(v)}" for k, v in _flat(self.changes).items())
        return f"Set {words}"

    def meaning(self, config: GateConfig) -> str:
        """From when."""
        return "It holds from the next tick on. What was folded until then stays as it is."

    @classmethod
    def told(cls, data: Values, before: Values) -> str:
        """Only what differs: settings are logged whole."""
        old, new = _flat(before), _flat(data["config"])
        changed = [k for k in new if old.get(k) != new[k]]
        words = ", ".join(f"{k} {setting(old.get(k))} → {setting(new[k])}" for k in changed)
        return "Settings: " + (words or "no change")


@action("label", "/v1/labels", scope="admin", event="ConfigChange", part="labels", verb="Label")
@dataclass(frozen=True)
class Label(Action):
    """Label regions for audits, outcomes and the page; replaces earlier labels."""

    labels: Annotated[
        dict[Region, dict[str, str]], Given(Kind.LABELS, "Regions and what to say of each.")
    ]

    def body(self, state: State, now: float) -> Values:
        """Known regions, known names, printable words; a link that browsers may follow."""
        if not isinstance(self.labels, dict) or not self.labels:
            raise ValueError(f"labels must be regions and their labels, got {self.labels!r:.80}")
        pairs = []
        for region, label in self.labels.items():
            known_region(state, region)
            if not isinstance(label, dict) or set(label) - set(LABELS):
                raise ValueError(f"a label has {', '.join(LABELS)}, got {label!r:.80}")
            for name, value in label.items():
                checked_word(name, value, 1000 if name == "url" else 200)
            if label.get("sensitive", "no") not in ("yes", "no"):
                raise ValueError(f"sensitive must be 'yes' or 'no', got {label['sensitive']!r}")
            if not label.get("url", "https://").lower().startswith(("https://", "http://")):
                raise ValueError(f"url must begin with https:// or http://, got {label['url']!r}")
            pairs.append([region, dict(label)])
        return {"labels": pairs}

    def title(self) -> str:
        """What is proposed."""
        return f"Label {some_names(list(self.labels))}"

    def meaning(self, config: GateConfig) -> str:
        """What labels are for."""
        return "Labels change no psi: the audit compares by them, and the page shows them."

    @classmethod
    def told(cls, data: Values, before: Values) -> str:
        """How many."""
        count = len(data["labels"])
        return "Labelled a region" if count == 1 else f"Labelled {count} regions"


def _flat(config: Values) -> Values:
    params = {f"params.{k}": v for k, v in (config.get("params") or {}).items()}
    return {**{k: v for k, v in config.items() if k != "params"}, **params}
