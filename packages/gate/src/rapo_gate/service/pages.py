"""The reviewer's pages, none of which needs a script, and the forms of human actions."""

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
"""Most regions of a dry run that are listed."""


def make_pages(gate: Gate, keys: Keys, audits: Audits, *, clock: Clock = time.time) -> APIRouter:
    """The routes of the reviewer's page, with sessions of their own.

    Args:
        gate: the gate to review.
        keys: a key of scope review opens the pages, one of scope admin also mode and settings.
        audits: what answers questions.
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
    """The handlers of the pages, one method each."""

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
        overview = self.ask(of_state, audit.overview)
        stimuli = self.ask(of_state, audit.outcomes)["stimuli"]
        course = overview["course"]
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
        returned = [s for s in stimuli if s["stays"] > 1]
        returned.sort(key=lambda s: -s["last_at"])
        return {
            "o": overview,
            "health": self.gate.health(),
            "config": self.gate.config,
            "charts": drawn,
            "scars": charts.histogram(overview["scars"]["from"], overview["scars"]["regions"]),
            "returned": returned[:20],
            "stimuli": len(stimuli),
            "bands": BAND_WORDS,
        }

    def regions(self, request: PageRequest) -> Response:
        """Regions: the largest scars first, or as the address asks."""
        frame, wanted = self._list(request, lists.REGIONS)
        views, fitting, known = self.ask(lists.regions, wanted)
        for view in views:
            course = view["course"]
            view["spark"] = charts.spark(course["H"]), charts.spark(course["G"])
        values = {**frame, "views": views, "fitting": fitting, "known": known}
        if "hx-request" in request.http.headers:
            return self.site.bare("_regions.html", **values)
        return self.site.render(request, "regions.html", **values)

    def _list(
        self, request: PageRequest, kind: lists.ListKind, top: str = "50"
    ) -> tuple[dict[str, Any], lists.ListRequest]:
        """What a page needs to draw the filters and heads of its list; and the list's request."""
        wanted = lists.list_request(kind, FormData({"top": [top], **request.fields}))
        frame = {
            "wanted": wanted,
            "kind": kind,
            "links": lists.ListLinks(kind, request.fields, wanted),
            "period": {name: request.fields.one(name) for name in ("from", "to")},
        }
        return frame, wanted

    def region(self, request: PageRequest) -> Response:
        """Everything about one region: state, course, chain, and the actions on it."""
        name = request.fields.region()
        chain = self.ask(Gate.chain, name)
        course = chain["course"]
        drawn = charts.over_time(
            "Trace G and scar H", course["at"], {"G": course["G"], "H": course["H"]}, 520, 170
        )
        now = FormData({part: [text] for part, text in chain["region"]["label"].items()})
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
        frame, wanted = self._list(request, lists.QUEUE, "200")
        items, count = self.ask(lists.waiting, wanted)
        return self.site.render(
            request, "queue.html", items=items, count=count, waits=WAIT_WORDS,
            config=self.gate.config, all_chosen=request.fields.one("all") == "yes",
            **frame,
        )  # fmt: skip

    def reporters(self, request: PageRequest) -> Response:
        """Who reported, and what became of it."""
        frame, wanted = self._list(request, lists.REPORTERS, "200")
        reporters, count = self.ask(lists.who_reported, wanted)
        return self.site.render(
            request, "reporters.html", reporters=reporters, count=count, **frame
        )

    def decisions(self, request: PageRequest) -> Response:
        """Decisions: the newest first, or as the address asks."""
        frame, wanted = self._list(request, lists.DECISIONS)
        listed, whole, dropped = self.ask(lists.decisions, wanted)
        return self.site.render(
            request, "decisions.html", decisions=listed, whole=whole, dropped=dropped, **frame
        )

    def decision(self, request: PageRequest) -> Response:
        """How much a decision was changed, and because of which reports."""
        explanation = self.ask(Gate.explain, request.fields.exact("id"))
        return self.site.render(request, "decision.html", d=explanation)

    def bias(self, request: PageRequest) -> Response:
        """Gating and reports by group and topic."""
        rates = self.ask(Gate.bias)
        tables = {kind: _drawn(entries) for kind, entries in rates.items()}
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
            meanings={"settings": SETTING_WORDS, "fields": FIELD_WORDS},
            action_log=self.ask(lists.action_log), digest=config.digest(),
            forms=self._forms(request, "", now),
            others=[a for a in ACTIONS.values() if a.subjects() and request.session.may(a.scope)],
        )  # fmt: skip

    def find(self, request: PageRequest) -> Response:
        """Go to the region or the decision of an id, else to the regions that contain the text."""
        text = request.fields.one("q")
        regions = self.ask(of_state, regions_written, text)
        if len(regions) == 1:
            return redirect(f"/region?{region_query(regions[0])}")
        if text and decision_key(text) in self.gate.store.find([decision_key(text)]):
            return redirect("/decision?" + urlencode({"id": text}))
        return redirect("/regions?" + urlencode({"q": text}))

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
        """Do the action, if there is a reason."""
        self._check_scope(request)
        reason = request.fields.one("reason")
        try:
            proposal = self._proposal(request)
            try:
                checked_reason(reason)
            except ValueError as error:
                problem = str(error) if reason else "Nothing was changed: an action needs a reason."
                return self._dry(request, proposal, problem, reason)
            action = proposal.made(reason, request.session.name, dry_run=False)
            effect = self.gate.act(action)
        except ValueError as error:
            return self._form(request, str(error))
        request.session.notice = _summary(effect, action.title())
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
        action = proposal.made("", request.session.name, dry_run=True)
        effect = self.ask(Gate.act, action)
        return self.site.render(
            request, "action.html", 422 if problem else 200, proposal=proposal, effect=effect,
            title=action.title(), about=action.meaning(self.gate.config), problem=problem,
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
    """What an action did, for the next page."""
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
