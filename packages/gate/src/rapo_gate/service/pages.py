"""The reviewer's page: what the gate knows, on pages that need no script."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from rapo_gate import audit
from rapo_gate.audit import Effect
from rapo_gate.config import Clock
from rapo_gate.declare import ACTIONS, Action, checked_reason
from rapo_gate.events import decision_key
from rapo_gate.fields import FormData, Input
from rapo_gate.format import (
    BAND_WORDS,
    FIELD_WORDS,
    SETTING_WORDS,
    WAIT_WORDS,
    region_query,
)
from rapo_gate.gate import Gate
from rapo_gate.service import charts, lists
from rapo_gate.service.audits import Audits, of_state, regions_written
from rapo_gate.service.auth import FailedLogins, Keys
from rapo_gate.service.guard import RefusedError
from rapo_gate.service.site import Handler, PageRequest, Site, add_login, add_page, redirect

EFFECTS_SHOWN = 100
"""Regions of a dry run that are listed."""


def make_pages(gate: Gate, keys: Keys, audits: Audits, *, clock: Clock = time.time) -> APIRouter:
    """The routes of the reviewer's page, with sessions of their own.

    Args:
        gate: what is reviewed.
        audits: who answers questions.
        keys: a key of scope review opens the page, one of scope admin also the mode.
        clock: Unix seconds, the gate's own; overrides end by it.
    """
    router = APIRouter(include_in_schema=False)
    site = Site(gate, audits)
    pages = Pages(site, clock)
    routes: list[tuple[str, Handler, str]] = [
        ("/", pages.overview, "GET"),
        ("/overview/live", pages.live, "GET"),
        ("/regions", pages.regions, "GET"),
        ("/region", pages.region, "GET"),
        ("/queue", pages.queue, "GET"),
        ("/reporters", pages.reporters, "GET"),
        ("/decisions", pages.decisions, "GET"),
        ("/decision", pages.decision, "GET"),
        ("/bias", pages.bias, "GET"),
        ("/policy", pages.policy, "GET"),
        ("/find", pages.find, "GET"),
        ("/actions/{kind}", pages.propose, "GET"),
        ("/actions/{kind}", pages.act, "POST"),
    ]
    for path, handler, method in routes:
        add_page(router, path, site.page(handler), method)
    add_login(router, site, keys, FailedLogins())

    async def static(request: Request) -> Response:
        return await site.assets.serve(request)

    add_page(router, "/static/{name:path}", static, "GET")
    return router


class Pages:
    """A method for every page."""

    def __init__(self, site: Site, clock: Clock) -> None:
        self.site, self.gate, self.clock = site, site.gate, clock
        self.ask = site.audits.ask_waiting

    # --- what is shown

    def overview(self, request: PageRequest) -> Response:
        """The gate at a glance."""
        return self.site.render(request, "overview.html", **self._overview())

    def live(self, request: PageRequest) -> Response:
        """The part of the overview that changes."""
        return self.site.bare("_live.html", **self._overview())

    def _overview(self) -> dict[str, Any]:
        seen = self.ask(of_state, audit.overview)
        found = self.ask(of_state, audit.outcomes)
        course = seen["course"]
        drawn = [
            charts.over_time(title, course["at"], {title: course[name]})
            for name, title in (
                ("decisions", "Decisions per tick"),
                ("tv", "Moved by the gate (TV), mean of a tick"),
                ("reports", "Reports per tick"),
                ("scar_mass", "All scars, sum of H"),
                ("reach", "Regions reached in a tick"),
                ("sensitive", "Sensitive impressions per tick"),
            )
        ]
        back = [s for s in found["stimuli"] if s["stays"] > 1]
        back.sort(key=lambda s: -s["last_at"])
        return {
            "o": seen,
            "health": self.gate.health(),
            "config": self.gate.config,
            "charts": drawn,
            "scars": charts.histogram(seen["scars"]["from"], seen["scars"]["regions"]),
            "returned": back[:20],
            "stimuli": len(found["stimuli"]),
            "bands": BAND_WORDS,
        }

    def regions(self, request: PageRequest) -> Response:
        """Regions: the largest scars first, or as asked."""
        asked = lists.wanted(lists.REGIONS, request.fields)
        views, found, known = self.ask(lists.regions, asked)
        for view in views:
            line = view["course"]
            view["spark"] = charts.spark(line["H"]), charts.spark(line["G"])
        values = {**self._list(request, lists.REGIONS, asked), "views": views, "found": found,
                  "known": known}  # fmt: skip
        if "hx-request" in request.http.headers:
            return self.site.bare("_regions.html", **values)
        return self.site.render(request, "regions.html", **values)

    def _list(
        self, request: PageRequest, table: lists.Table, asked: lists.Wanted
    ) -> dict[str, Any]:
        """What every page with a list needs to draw its filters and heads."""
        return {
            "asked": asked,
            "table": table,
            "links": lists.Links(table, request.fields, asked),
            "given": {name: request.fields.one(name) for name in ("from", "to")},
        }

    def region(self, request: PageRequest) -> Response:
        """Everything about one region: state, course, chain, and what may be done."""
        name = request.fields.region()
        chain = self.ask(Gate.chain, name)
        course = chain["course"]
        drawn = charts.over_time(
            "Trace G and scar H", course["at"], {"G": course["G"], "H": course["H"]}, 520, 170
        )
        now = FormData({part: [words] for part, words in chain["region"]["label"].items()})
        if chain["region"]["override"]:
            now["psi"] = [f"{chain['region']['override']['psi']:g}"]
        return self.site.render(
            request, "region.html", view=chain["region"], chain=chain, chart=drawn,
            config=self.gate.config, forms=self._forms(request, "region", now),
        )  # fmt: skip

    def _forms(self, request: PageRequest, subject: str, now: FormData) -> dict[str, Any]:
        """Forms of the actions about a subject, by name, filled with the values of now."""
        return {
            name: (action, inputs_of(action, now, beside=True))
            for name, action in ACTIONS.items()
            if request.session.may(action.scope)
            and (subject in action.subjects() if subject else not action.subjects())
        }

    def queue(self, request: PageRequest) -> Response:
        """Reports that wait for a reviewer."""
        asked = lists.wanted(lists.QUEUE, FormData({"top": ["200"], **request.fields}))
        items, count = self.ask(lists.waiting, asked)
        return self.site.render(
            request, "queue.html", items=items, count=count, waits=WAIT_WORDS,
            config=self.gate.config, all_chosen=request.fields.one("all") == "yes",
            **self._list(request, lists.QUEUE, asked),
        )  # fmt: skip

    def reporters(self, request: PageRequest) -> Response:
        """Who reported."""
        asked = lists.wanted(lists.REPORTERS, FormData({"top": ["200"], **request.fields}))
        found, count = self.ask(lists.who_reported, asked)
        return self.site.render(
            request, "reporters.html", reporters=found, count=count,
            **self._list(request, lists.REPORTERS, asked),
        )  # fmt: skip

    def decisions(self, request: PageRequest) -> Response:
        """Decisions: the newest first, or as asked."""
        asked = lists.wanted(lists.DECISIONS, request.fields)
        listed, whole, dropped = self.ask(lists.decisions, asked)
        return self.site.render(
            request, "decisions.html", decisions=listed, whole=whole, dropped=dropped,
            **self._list(request, lists.DECISIONS, asked),
        )  # fmt: skip

    def decision(self, request: PageRequest) -> Response:
        """How much a decision was changed, and because of which reports."""
        named = request.fields.exact("id")
        why = self.ask(Gate.explain, named)
        return self.site.render(request, "decision.html", d=why)

    def bias(self, request: PageRequest) -> Response:
        """Gating and reports by group and topic."""
        found = self.ask(Gate.bias)
        tables = {kind: _drawn(entries) for kind, entries in found.items()}
        return self.site.render(request, "bias.html", tables=tables)

    def policy(self, request: PageRequest) -> Response:
        """The mode, the settings in force, and what people did."""
        config = self.gate.config
        values = config.to_dict()
        fields = values.pop("params")
        mode, percent = self.gate.read(lambda state: (state.mode, state.percent))
        now = FormData({"mode": [mode], "percent": [f"{percent:g}"]})
        return self.site.render(
            request, "policy.html", settings=values, fields=fields,
            words={"settings": SETTING_WORDS, "fields": FIELD_WORDS},
            action_log=self.ask(lists.action_log), digest=config.digest(),
            forms=self._forms(request, "", now),
            others=[a for a in ACTIONS.values() if a.subjects() and request.session.may(a.scope)],
        )  # fmt: skip

    def find(self, request: PageRequest) -> Response:
        """Go to the region or the decision of an id, else to the regions that have it in them."""
        words = request.fields.one("q")
        same = self.ask(of_state, regions_written, words)
        if len(same) == 1:
            return redirect(f"/region?{region_query(same[0])}")
        if words and decision_key(words) in self.gate.store.find([decision_key(words)]):
            return redirect("/decision?" + urlencode({"id": words}))
        return redirect("/regions?" + urlencode({"q": words}))

    # --- what is done

    def propose(self, request: PageRequest) -> Response:
        """Show what an action would do and ask for a reason; without fields, ask for those."""
        self._check_scope(request)
        try:
            if request.fields:
                return self._dry(request, self._proposal(request))
        except ValueError as error:
            return self._form(request, str(error))
        return self._form(request)

    def act(self, request: PageRequest) -> Response:
        """Do it, if there is a reason."""
        self._check_scope(request)
        reason = request.fields.one("reason")
        try:
            proposal = self._proposal(request)
            try:
                checked_reason(reason)
            except ValueError as error:
                words = str(error) if reason else "Nothing was changed: an action needs a reason."
                return self._dry(request, proposal, words, reason)
            done = proposal.made(reason, request.session.name, dry_run=False)
            effect = self.gate.act(done)
        except ValueError as error:
            return self._form(request, str(error))
        request.session.notice = _summary(effect, done.title())
        return redirect(proposal.back)

    def _check_scope(self, request: PageRequest) -> None:
        scope = action_named(request.http.path_params["kind"]).scope
        if not request.session.may(scope):
            raise RefusedError(403, f"this needs a key of scope {scope}; log in with one")

    def _proposal(self, request: PageRequest) -> Proposal:
        return proposal_of(request.http.path_params["kind"], request.fields, self.clock())

    def _form(self, request: PageRequest, problem: str = "") -> Response:
        action = action_named(request.http.path_params["kind"])
        return self.site.render(
            request, "form.html", 422 if problem else 200, action=action, problem=problem,
            inputs=inputs_of(action, request.fields),
        )  # fmt: skip

    def _dry(
        self, request: PageRequest, proposal: Proposal, problem: str = "", reason: str = ""
    ) -> Response:
        tried = proposal.made("", request.session.name, dry_run=True)
        effect = self.ask(Gate.act, tried)
        return self.site.render(
            request, "action.html", 422 if problem else 200, proposal=proposal, effect=effect,
            title=tried.title(), about=tried.meaning(self.gate.config), problem=problem,
            shown=effect.regions[:EFFECTS_SHOWN], reason=reason, action=request.http.url.path,
        )  # fmt: skip


def _drawn(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries of a bias table with their whiskers; each column has one scale."""
    for rate in ("gating_rate", "report_rate"):
        for entry, mark in zip(entries, charts.whiskers([e[rate] for e in entries]), strict=True):
            entry[rate]["mark"] = mark
    signals = [s for e in entries for s in e["signals"]]
    for rate in ("report_rate", "rolled_back"):
        for signal, mark in zip(signals, charts.whiskers([s[rate] for s in signals]), strict=True):
            signal[rate]["mark"] = mark
    return entries


def _summary(effect: Effect, title: str, most: int = 20) -> dict[str, Any]:
    """What was done, for the next page."""
    return {
        "title": f"Done: {title}",
        "event": effect.event,
        "reports": effect.reports,
        "regions": effect.regions[:most],
        "regions_in_all": len(effect.regions),
    }


# --- forms of actions


@dataclass(frozen=True, slots=True)
class Proposal:
    """An action that was filled in and waits for a reviewer's reason."""

    action: type[Action]
    values: dict[str, Any]
    fields: list[tuple[str, str]]
    """Names and values that the form must send again."""
    back: str
    """The page that the reviewer came from, and goes back to."""

    def made(self, reason: str, by: str, *, dry_run: bool) -> Action:
        """The action itself."""
        return self.action(**self.values, reason=reason, by=by, dry_run=dry_run)


def proposal_of(name: str, form: FormData, now: float) -> Proposal:
    """The action that a form proposes; `now` is Unix seconds.

    Raises:
        LookupError: there is no such action.
        UserError: a value cannot be read.
    """
    action = action_named(name)
    values = {field.name: field.from_form(form, now) for field in action.fields}
    kept = [(k, v) for k, sent in form.items() if k not in ("csrf", "reason") for v in sent]
    if form.names_region():
        back = f"/region?{region_query(form.region())}"
    elif form.exact("source"):
        back = "/reporters"
    else:
        back = "/queue" if "reports" in form else "/policy"
    return Proposal(action, values, kept, back)


def action_named(name: str) -> type[Action]:
    """The action of a path."""
    if name not in ACTIONS:
        raise LookupError(f"there is no action {name!r:.40}")
    return ACTIONS[name]


def inputs_of(action: type[Action], form: FormData, *, beside: bool = False) -> list[Input]:
    """The inputs of an action's form, filled with what a form sent before.

    Args:
        action: what is to be done.
        form: earlier values.
        beside: leave out what the page that holds the form says itself.
    """
    inputs = [i for f in action.fields for i in (f.inputs_beside() if beside else f.inputs())]
    return [
        i if i.type == "checkbox" else i._replace(value=form.one(i.name) or i.value) for i in inputs
    ]
