"""`Reviewed`: what people do to a gate. Each action has a reason and a dry run."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from rapo.gate import acts
from rapo.gate.acts import Effect
from rapo.gate.events import Event, Region, action_key
from rapo.gate.keeper import Keeper
from rapo.gate.state import State
from rapo.gate.store import Appending


class Reviewed(Keeper):
    """Confirm, override, allow, roll back, change modes and settings, label."""

    def confirm(
        self,
        reports: list[int] | int | None = None,
        regions: list[Region] | None = None,
        *,
        reason: str = "",
        by: str = "program",
        dry_run: bool = False,
    ) -> Effect:
        """Vouch for reports or regions: the regions may scar for `confirm_ticks`.

        Late and quarantined reports count from the next tick on.
        """
        return self._act("Confirm", dry_run, lambda state: acts.confirm(
            state, reports=_list(reports), regions=regions, reason=_reason(reason, dry_run), by=by
        ))  # fmt: skip

    def override(
        self,
        region: Region,
        psi: float | None,
        *,
        expires_at: float | None = None,
        reason: str = "",
        by: str = "program",
        dry_run: bool = False,
    ) -> Effect:
        """Set a region's psi by hand until `expires_at` (Unix seconds); None takes that back."""
        return self._act("Override", dry_run, lambda state: acts.override(
            state, region, psi, expires_at=expires_at, now=self._clock(),
            reason=_reason(reason, dry_run), by=by,
        ))  # fmt: skip

    def allow(
        self,
        region: Region,
        *,
        remove: bool = False,
        reason: str = "",
        by: str = "program",
        dry_run: bool = False,
    ) -> Effect:
        """Put a region on the allow-list: no report on it counts, nor ever did; or take it off."""
        return self._act("Allow", dry_run, lambda state: acts.allow(
            state, region, remove=remove, reason=_reason(reason, dry_run), by=by
        ))  # fmt: skip

    def rollback(
        self,
        reports: list[int] | int | None = None,
        source: str | None = None,
        start: float | None = None,
        end: float | None = None,
        *,
        reason: str = "",
        by: str = "program",
        dry_run: bool = False,
    ) -> Effect:
        """Take reports out as if they had never come: some, a reporter's, a time range's.

        Args:
            reports: report ids.
            source: every report of this reporter so far.
            start: reports about exposures from this time on, Unix seconds.
            end: and before this time.
            reason: for the log; a dry run needs none.
            by: who does it.
            dry_run: only show what would change.
        """
        return self._act("Rollback", dry_run, lambda state: acts.rollback(
            state, reports=_list(reports), source=source, start=start, end=end,
            reason=_reason(reason, dry_run), by=by,
        ))  # fmt: skip

    def set_mode(
        self, mode: str, percent: float = 100.0, *, reason: str = "set by program",
        by: str = "program", dry_run: bool = False,
    ) -> Effect:  # fmt: skip
        """`shadow` computes and logs; `enforce` serves the gated law to `percent` of decisions."""
        return self._act("ConfigChange", dry_run, lambda state: acts.mode(
            mode, percent, reason=reason, by=by
        ))  # fmt: skip

    def configure(
        self, changes: dict[str, Any], *, reason: str = "", by: str = "program",
        dry_run: bool = False,
    ) -> Effect:  # fmt: skip
        """Change settings from the next tick on; those that ticks hang on cannot change."""
        return self._act("ConfigChange", dry_run, lambda state: acts.configure(
            state, changes, reason=_reason(reason, dry_run), by=by
        ))  # fmt: skip

    def label(
        self, labels: dict[Region, dict[str, str]], *, reason: str = "", by: str = "program",
        dry_run: bool = False,
    ) -> Effect:  # fmt: skip
        """Label regions with `group`, `topic`, `sensitive` ("yes"/"no") for audits and outcomes."""
        return self._act("ConfigChange", dry_run, lambda state: acts.labels(
            state, labels, reason=_reason(reason, dry_run), by=by
        ))  # fmt: skip

    def _act(self, kind: str, dry_run: bool, body_of: Callable[[State], dict[str, Any]]) -> Effect:
        """Check an action against the state at the end of the log, then try it or do it."""
        name = secrets.token_hex(12)
        done: Effect | None = None

        def work(state: State, log: Appending) -> tuple[Effect, list[Event]]:
            nonlocal done
            if done is not None and log.find([action_key(name)]):
                return done, []  # the first attempt was committed after all, where it stood then
            draft = acts.draft(kind, body_of(state), self._clock(), name)
            effect = acts.tried(state, draft)
            if dry_run:
                return effect, []
            events = log.append([draft])
            at = events[0].position
            done = Effect(False, effect.regions, effect.reports, at, at)
            return done, events

        return self._soon(work).result()  # type: ignore[no-any-return]


def _list(reports: list[int] | int | None) -> list[int] | None:
    """One report as a list of one."""
    return [reports] if isinstance(reports, int) else reports


def _reason(reason: str, dry_run: bool) -> str:
    return reason or "dry run" if dry_run else reason
