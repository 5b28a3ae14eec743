"""The seven human actions on a gate, each declared once.

Reviewers confirm, override, allow and roll back; administrators set the mode, settings and labels.
`rapo_gate.declare` says what follows from each declaration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from rapo_core.checks import UserError
from rapo_gate.config import FIXED, GateConfig
from rapo_gate.declare import (
    Action,
    Values,
    action,
    known_region,
    known_reports,
    moment_or_none,
    real_in,
)
from rapo_gate.events import Region, checked_word
from rapo_gate.fields import (
    LABELS,
    ChoiceField,
    EndField,
    FlagField,
    LabelsField,
    NumberField,
    RegionField,
    RegionsField,
    ReportsField,
    SettingsField,
    SinceField,
    SourceField,
)
from rapo_gate.fold.state import State
from rapo_gate.format import (
    clock,
    flat,
    listed_reports,
    number,
    setting,
    since_and_until,
    some_names,
    span,
    these_reports,
)

_REPORTS = ReportsField("Report ids.", "--report")
_REGION = RegionField("A region that a decision had.")


@action("confirm", "/v1/confirmations", scope="review", event="Confirm", verb="Confirm")
@dataclass(frozen=True)
class Confirm(Action):
    """Confirm reports or regions: the regions may scar.

    A confirmation holds for `confirm_ticks`. Late and quarantined reports that it names count from
    the next tick on.
    """

    reports: Annotated[list[int] | int | None, _REPORTS] = None
    regions: Annotated[list[Region] | None, RegionsField("Regions.", "--region")] = None

    def body(self, state: State, now: float) -> Values:
        """At least one report or region, all of them known."""
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
            return f"Confirm {these_reports(self.reports)}"
        return f"Confirm what was reported on {some_names(self.regions)}"

    def meaning(self, config: GateConfig) -> str:
        """When late reports count, and how long regions may scar."""
        days = span(config.confirm_ticks * config.tick_seconds)
        if self.reports:
            return (
                "Late and quarantined reports count from the next tick on, so they change nothing "
                f"at once. The regions of the others may scar for {days}."
            )
        return f"For {days} the region may scar without further agreement of reporters."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """The reports, if it names any."""
        named = data.get("reports")
        return f"Confirmed {listed_reports(named) if named else 'what was reported'}"


@action("override", "/v1/overrides", scope="review", event="Override", verb="Set ψ")
@dataclass(frozen=True)
class Override(Action):
    """Set a region's psi by hand until a time, or take that back."""

    region: Annotated[Region, _REGION]
    psi: Annotated[
        float | None,
        NumberField("At least psi_min; none takes it back.", low=0, high=1, removable=True),
    ]
    expires_at: Annotated[
        float | None, EndField("When it ends; never if left out.", "--expires")
    ] = None

    def body(self, state: State, now: float) -> Values:
        """A known region, psi in [psi_min, 1] or None for an override to end, an end to come."""
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
        return f"Set ψ of {self.region} to {number(self.psi)}"

    def meaning(self, config: GateConfig) -> str:
        """How long the override holds, and what goes on meanwhile."""
        if self.psi is None:
            return "The region is again gated by what was reported."
        end = self.expires_at
        until = "until somebody takes it back" if end is None else f"until {clock(end)} UTC"
        return f"It holds {until}, whatever is reported. Trace and scar go on meanwhile."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """The new psi, and when it ends."""
        if data["psi"] is None:
            return "Took the override back"
        end = data.get("expires_at")
        until = "until taken back" if end is None else f"until {clock(end)} UTC"
        return f"Set ψ to {number(data['psi'])} {until}"


@action("allow", "/v1/allow", scope="review", event="Allow", verb="Change the allow-list")
@dataclass(frozen=True)
class Allow(Action):
    """Put a region on the allow-list, or take it off.

    No report on such a region counts, and earlier ones no longer do.
    """

    region: Annotated[Region, _REGION]
    remove: Annotated[bool, FlagField("Take it off the list.")] = field(default=False, kw_only=True)

    def body(self, state: State, now: float) -> Values:
        """A known region; one that is taken off must be on the list."""
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
        """What becomes of the region's reports."""
        if self.remove:
            return "Every report on the region counts again, earlier ones too."
        return "No report on the region counts, earlier ones neither: its trace and scar are gone."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """Whether the region is on the list now."""
        return "Put on the allow-list" if data["allowed"] else "Off the allow-list"


@action("rollback", "/v1/rollbacks", scope="review", event="Rollback", verb="Roll back")
@dataclass(frozen=True)
class Rollback(Action):
    """Take reports out as if they had never come: some, a reporter's, or a time range's."""

    reports: Annotated[list[int] | int | None, _REPORTS] = None
    source: Annotated[str | None, SourceField("Everything of this reporter so far.")] = None
    start: Annotated[
        float | None, SinceField("Reports about exposures from this time on.", "--from")
    ] = None
    end: Annotated[float | None, SinceField("And before this time.", "--to")] = None

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
            return f"Roll back {these_reports(self.reports)}"
        return f"Roll back everything{since_and_until(self.source, self.start, self.end)}"

    def meaning(self, config: GateConfig) -> str:
        """What is taken out."""
        if self.source is not None:
            return (
                "Every report of this reporter so far is taken out as if it had never come. "
                "Reports that it sends later count again."
            )
        return "These reports are taken out as if they had never come."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """What was taken out."""
        if data.get("reports"):
            return f"Rolled back {listed_reports(data['reports'])}"
        where = since_and_until(data.get("source"), data.get("from"), data.get("to"))
        return f"Rolled back all reports{where}"


@action(
    "mode", "/v1/mode", scope="admin", event="ConfigChange", part="mode", verb="Change the mode"
)
@dataclass(frozen=True)
class Mode(Action):
    """Serve the gated distribution, or only log it.

    `enforce` serves it for `percent` of decisions; `shadow` serves what was proposed.
    """

    mode: Annotated[str, ChoiceField("Compute and log, or serve.", choices=("shadow", "enforce"))]
    percent: Annotated[
        float, NumberField("Share of decisions to enforce, in percent.", low=0, high=100)
    ] = 100.0
    reason: str = field(default="set by program", kw_only=True)

    def body(self, state: State, now: float) -> Values:
        """One of the two modes, and a percentage."""
        if self.mode not in ("shadow", "enforce"):
            raise UserError(f"mode must be 'shadow' or 'enforce', got {self.mode!r}")
        return {"mode": self.mode, "percent": real_in("percent", self.percent, 0, 100)}

    def title(self) -> str:
        """What is proposed."""
        if self.mode == "enforce":
            return f"Enforce for {number(self.percent)} % of decisions"
        return "Go back to shadow mode"

    def meaning(self, config: GateConfig) -> str:
        """What decisions are answered with."""
        if self.mode == "enforce":
            return "These decisions get the gated distribution; the others get what was proposed."
        return "Every decision gets what was proposed; what the gate would do is only logged."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """The mode and the percentage."""
        if data["mode"] == "shadow":
            return "Mode: shadow"
        return f"Mode: enforce for {number(data['percent'])} % of decisions"


@action(
    "configure", "/v1/config", scope="admin", event="ConfigChange", part="config",
    verb="Change the settings",
)  # fmt: skip
@dataclass(frozen=True)
class Configure(Action):
    """Change settings from the next tick on.

    Settings that give ticks their meaning cannot change.
    """

    changes: Annotated[dict[str, Any], SettingsField("As min_sources=5 or params.w_H=4.")]

    def body(self, state: State, now: float) -> Values:
        """Settings that are complete and valid once changed; fixed ones must stay."""
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
        pairs = flat(self.changes).items()
        return "Set " + ", ".join(f"{name} = {setting(value)}" for name, value in pairs)

    def meaning(self, config: GateConfig) -> str:
        """When the settings begin to hold."""
        return "They hold from the next tick on. What counted until then stays as it is."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """The settings that differ; the event holds all of them."""
        old, new = flat(before), flat(data["config"])
        changes = [
            f"{name} {setting(old.get(name))} → {setting(value)}"
            for name, value in new.items()
            if old.get(name) != value
        ]
        return "Settings: " + (", ".join(changes) or "no change")


@action("label", "/v1/labels", scope="admin", event="ConfigChange", part="labels", verb="Label")
@dataclass(frozen=True)
class Label(Action):
    """Label regions for audits, outcomes and the page. Replaces earlier labels."""

    labels: Annotated[dict[Region, dict[str, str]], LabelsField("Regions and what to say of each.")]

    def body(self, state: State, now: float) -> Values:
        """Known regions, known parts of a label, printable text, a link that is http or https."""
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
        return f"Label {some_names(list(self.labels))}"

    def meaning(self, config: GateConfig) -> str:
        """What labels are used for."""
        return "Labels change no psi: the bias audit compares by them, and the page shows them."

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """How many regions were labelled."""
        count = len(data["labels"])
        return "Labelled a region" if count == 1 else f"Labelled {count} regions"
