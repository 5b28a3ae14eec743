"""What people do to a gate, each action declared once.

Reviewers confirm, override, allow and roll back; administrators set the mode, settings and labels.
Gate method, endpoint, command, form, dry run and log line all follow from the declaration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from rapo_core.checks import UserError
from rapo_gate import format as words
from rapo_gate.config import FIXED, GateConfig
from rapo_gate.declare import (
    LABELS,
    Action,
    Given,
    Kind,
    action,
    known_region,
    known_reports,
    moment_or_none,
    real_in,
)
from rapo_gate.events import Region, checked_word
from rapo_gate.state import State

Values = dict[str, Any]

_REPORTS = Given(Kind.REPORTS, "Report ids.", "--report")
_REGION = Given(Kind.REGION, "A region that a decision had.")


@action("confirm", "/v1/confirmations", scope="review", event="Confirm", verb="Confirm")
@dataclass(frozen=True)
class Confirm(Action):
    """Vouch for reports or regions: the regions may scar.

    That holds for `confirm_ticks`. Late and quarantined reports count from the next tick on.
    """

    reports: Annotated[list[int] | int | None, _REPORTS] = None
    regions: Annotated[list[Region] | None, Given(Kind.REGIONS, "Regions.", "--region")] = None

    def body(self, state: State, now: float) -> Values:
        """Known reports, known regions, at least one."""
        if not self.reports and not self.regions:
            raise UserError("a confirmation names reports or regions; it got none")
        if isinstance(self.regions, str | bytes):  # its letters would be taken for regions
            raise UserError(f"regions must be a list of regions, got {self.regions!r:.80}")
        return {
            "reports": known_reports(state, self.reports or []),
            "regions": [known_region(state, r) for r in self.regions or []],
        }

    def title(self) -> str:
        """What is proposed."""
        if self.reports:
            return f"Confirm {words.these_reports(self.reports)}"
        return f"Confirm what was reported on {words.some_names(self.regions)}"

    def meaning(self, config: GateConfig) -> str:
        """Late reports count at the next tick, the others' regions may scar."""
        days = words.span(config.confirm_ticks * config.tick_seconds)
        if self.reports:
            return (
                "Late and quarantined reports count from the next tick on, so they change nothing "
                f"at once. The regions of the others may scar for {days}."
            )
        return f"You vouch for it: for {days} the region may scar without further agreement."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """Which reports, if any."""
        named = data.get("reports")
        return f"Confirmed {words.listed_reports(named) if named else 'what was reported'}"


@action("override", "/v1/overrides", scope="review", event="Override", verb="Set ψ")
@dataclass(frozen=True)
class Override(Action):
    """Set a region's psi by hand until a time, or take that back."""

    region: Annotated[Region, _REGION]
    psi: Annotated[
        float | None,
        Given(Kind.REAL, "At least psi_min; none takes an override back.", low=0, high=1),
    ]
    expires_at: Annotated[
        float | None, Given(Kind.UNTIL, "When it ends; never if left out.", "--expires")
    ] = None

    def body(self, state: State, now: float) -> Values:
        """A known region; psi in [psi_min, 1], or an override to take back; an end to come."""
        known_region(state, self.region)
        low = state.config.params.psi_min
        psi = None
        if self.psi is not None:
            psi = real_in("psi", self.psi, low, 1, f"[psi_min, 1] = [{low:g}, 1]")
        elif state.regions.number(self.region) not in state.overrides:
            raise UserError(f"region {self.region!r} has no override to take back")
        end = moment_or_none("expires_at", self.expires_at)
        if end is not None and end <= now:
            raise UserError(f"expires_at must be in the future, got {self.expires_at!r}")
        return {"region": self.region, "psi": psi, "expires_at": end}

    def title(self) -> str:
        """What is proposed."""
        if self.psi is None:
            return f"Take the override of {self.region} back"
        return f"Set ψ of {self.region} to {words.number(self.psi)}"

    def meaning(self, config: GateConfig) -> str:
        """How long, and what goes on underneath."""
        if self.psi is None:
            return "The region is gated by what was reported again."
        end = self.expires_at
        until = "until somebody takes it back" if end is None else f"until {words.clock(end)} UTC"
        return f"It holds {until}, whatever is reported. The trace and the scar go on underneath."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """psi, and until when."""
        if data["psi"] is None:
            return "Took the override back"
        end = data.get("expires_at")
        until = "until taken back" if end is None else f"until {words.clock(end)} UTC"
        return f"Set ψ to {words.number(data['psi'])} {until}"


@action("allow", "/v1/allow", scope="review", event="Allow", verb="Change the allow-list")
@dataclass(frozen=True)
class Allow(Action):
    """Put a region on the allow-list, or take it off. No report on it counts, nor ever did."""

    region: Annotated[Region, _REGION]
    remove: Annotated[bool, Given(Kind.FLAG, "Take it off the list.")] = field(
        default=False, kw_only=True
    )

    def body(self, state: State, now: float) -> Values:
        """A known region, that is on the list if it is to go."""
        known_region(state, self.region)
        if self.remove and state.regions.number(self.region) not in state.allowed:
            raise UserError(f"region {self.region!r} is not on the allow-list")
        return {"region": self.region, "allowed": not self.remove}

    def title(self) -> str:
        """What is proposed."""
        if self.remove:
            return f"Take {self.region} off the allow-list"
        return f"Put {self.region} on the allow-list"

    def meaning(self, config: GateConfig) -> str:
        """What becomes of its reports."""
        if self.remove:
            return "Every report on it counts again, the old ones too."
        return "No report on it counts, nor ever did: its trace and its scar are gone."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """On or off."""
        return "Put on the allow-list" if data["allowed"] else "Off the allow-list"


@action("rollback", "/v1/rollbacks", scope="review", event="Rollback", verb="Roll back")
@dataclass(frozen=True)
class Rollback(Action):
    """Take reports out as if they had never come. Some, a reporter's, a time range's."""

    reports: Annotated[list[int] | int | None, _REPORTS] = None
    source: Annotated[str | None, Given(Kind.WORD, "Everything of this reporter so far.")] = None
    start: Annotated[
        float | None, Given(Kind.SINCE, "Reports about exposures from this time on.", "--from")
    ] = None
    end: Annotated[float | None, Given(Kind.SINCE, "And before this time.", "--to")] = None

    def body(self, state: State, now: float) -> Values:
        """Reports that count or wait; or a source that reported, a time range, or both."""
        start, end = moment_or_none("start", self.start), moment_or_none("end", self.end)
        others = self.source is not None or start is not None or end is not None
        if self.reports is not None and others:
            raise UserError("a rollback names reports, or a source and a time range, not both")
        if not others and (self.reports is None or self.reports == []):
            raise UserError("a rollback names reports, a source or a time range; it got none")
        if self.reports is not None:
            return {"reports": known_reports(state, self.reports)}
        if self.source is not None:
            checked_word("source", self.source)
            waiting = [*state.due(), *state.review.values()]
            if self.source not in state.sources and all(r.source != self.source for r in waiting):
                raise UserError(f"nothing was reported by {self.source!r}")
        if start is not None and end is not None and not start < end:
            raise UserError(f"a time range must have start < end, got {start} and {end}")
        return {"source": self.source, "from": start, "to": end}

    def title(self) -> str:
        """What is proposed."""
        if self.reports:
            return f"Roll back {words.these_reports(self.reports)}"
        return f"Roll back everything{words.since_and_until(self.source, self.start, self.end)}"

    def meaning(self, config: GateConfig) -> str:
        """Never was."""
        if self.source is not None:
            return (
                "Every report of this reporter so far is taken out as if it had never come. "
                "Reports that it sends later count again."
            )
        return "What they reported is taken out as if it had never come."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """What was taken out."""
        if data.get("reports"):
            return f"Rolled back {words.listed_reports(data['reports'])}"
        where = words.since_and_until(data.get("source"), data.get("from"), data.get("to"))
        return f"Rolled back all reports{where}"


@action(
    "mode", "/v1/mode", scope="admin", event="ConfigChange", part="mode", verb="Change the mode"
)
@dataclass(frozen=True)
class Mode(Action):
    """Serve the gated law, or only log it. `enforce` does so for `percent` of decisions."""

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
            raise UserError(f"mode must be 'shadow' or 'enforce', got {self.mode!r}")
        return {"mode": self.mode, "percent": real_in("percent", self.percent, 0, 100)}

    def title(self) -> str:
        """What is proposed."""
        if self.mode == "enforce":
            return f"Enforce for {words.number(self.percent)} % of decisions"
        return "Go back to shadow mode"

    def meaning(self, config: GateConfig) -> str:
        """What decisions are answered with."""
        if self.mode == "enforce":
            return "These decisions are answered with the gated law; the others as proposed."
        return "Decisions are computed and logged, and answered as proposed."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """Mode and percentage."""
        if data["mode"] == "shadow":
            return "Mode: shadow"
        return f"Mode: enforce for {words.number(data['percent'])} % of decisions"


@action(
    "configure", "/v1/config", scope="admin", event="ConfigChange", part="config",
    verb="Change the settings",
)  # fmt: skip
@dataclass(frozen=True)
class Configure(Action):
    """Change settings from the next tick on. Those that ticks hang on cannot change."""

    changes: Annotated[dict[str, Any], Given(Kind.SETTINGS, "As min_sources=5 or params.w_H=4.")]

    def body(self, state: State, now: float) -> Values:
        """Settings that are whole and sound once changed; the fixed ones as they were."""
        changes, old = self.changes, state.config.to_dict()
        if not isinstance(changes, dict) or not changes:
            raise UserError(f"changes must be settings and their values, got {changes!r:.80}")
        new = {**old, **changes}
        if isinstance(changes.get("params"), dict):
            new["params"] = {**old["params"], **changes["params"]}
        after = GateConfig.from_dict(new).to_dict()
        for name in FIXED:
            if after[name] != old[name]:
                raise UserError(
                    f"{name} cannot change: ticks in the log would mean something else; "
                    f"make a new gate, or keep {old[name]}"
                )
        return {"config": after}

    def title(self) -> str:
        """What is proposed."""
        pairs = words.flat(self.changes).items()
        return "Set " + ", ".join(f"{name} = {words.setting(value)}" for name, value in pairs)

    def meaning(self, config: GateConfig) -> str:
        """From when."""
        return "It holds from the next tick on. What was folded until then stays as it is."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """Only what differs: settings are logged whole."""
        old, new = words.flat(before), words.flat(data["config"])
        changes = [
            f"{name} {words.setting(old.get(name))} → {words.setting(value)}"
            for name, value in new.items()
            if old.get(name) != value
        ]
        return "Settings: " + (", ".join(changes) or "no change")


@action("label", "/v1/labels", scope="admin", event="ConfigChange", part="labels", verb="Label")
@dataclass(frozen=True)
class Label(Action):
    """Label regions for audits, outcomes and the page. Replaces earlier labels."""

    labels: Annotated[
        dict[Region, dict[str, str]], Given(Kind.LABELS, "Regions and what to say of each.")
    ]

    def body(self, state: State, now: float) -> Values:
        """Known regions, known names, printable words; a link that browsers may follow."""
        if not isinstance(self.labels, dict) or not self.labels:
            raise UserError(f"labels must be regions and their labels, got {self.labels!r:.80}")
        pairs = []
        for region, label in self.labels.items():
            known_region(state, region)
            if not isinstance(label, dict) or set(label) - set(LABELS):
                raise UserError(f"a label has {', '.join(LABELS)}, got {label!r:.80}")
            for name, value in label.items():
                checked_word(name, value, 1000 if name == "url" else 200)
            if label.get("sensitive", "no") not in ("yes", "no"):
                raise UserError(f"sensitive must be 'yes' or 'no', got {label['sensitive']!r}")
            if not label.get("url", "https://").lower().startswith(("https://", "http://")):
                raise UserError(f"url must begin with https:// or http://, got {label['url']!r}")
            pairs.append([region, dict(label)])
        return {"labels": pairs}

    def title(self) -> str:
        """What is proposed."""
        return f"Label {words.some_names(list(self.labels))}"

    def meaning(self, config: GateConfig) -> str:
        """What labels are for."""
        return "Labels change no psi: the audit compares by them, and the page shows them."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """How many."""
        count = len(data["labels"])
        return "Labelled a region" if count == 1 else f"Labelled {count} regions"
