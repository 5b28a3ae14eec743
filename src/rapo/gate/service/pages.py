"""The reviewer's page: what the gate knows, on pages that need no script."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from rapo.gate.config import Clock
from rapo.gate.declare import ACTIONS, Effect, checked_reason, deeds
from rapo.gate.events import decision_key
from rapo.gate.format import (
    BAND_WORDS,
    FIELD_WORDS,
    SETTING_WORDS,
    WAIT_WORDS,
    region_query,
)
from rapo.gate.gate import Gate
from rapo.gate.service import charts, forms, questions
from rapo.gate.service.audits import Audits
from rapo.gate.service.auth import Attempts, Keys
from rapo.gate.service.forms import Proposal, Table
from rapo.gate.service.site import Handler, Site, Visit, add_login, add_page, redirect
from rapo.gate.service.strict import RefusedError

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
    add_login(router, site, keys, Attempts())

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

    def overview(self, visit: Visit) -> Response:
        """The gate at a glance."""
        return self.site.render(visit, "overview.html", **self._overview())

    def live(self, visit: Visit) -> Response:
        """The part of the overview that changes."""
        return self.site.bare("_live.html", **self._overview())

    def _overview(self) -> dict[str, Any]:
        seen = self.ask(questions.overview)
        found = self.ask(questions.outcomes)
        course = seen["course"]
        drawn = [
            charts.over_time(title, course["at"], {title: course[name]})
            for name, title in (
                ("decisions", "Decisions per tick"),
                ("tv", "TV distance, mean of a tick"),
                ("reports", "Reports per tick"),
                ("scar_mass", "Scar mass, the sum of H"),
                ("reach", "Reach, regions shown in a tick"),
                ("sensitive", "Sensitive mass, impressions of a tick"),
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

    def regions(self, visit: Visit) -> Response:
        """Regions: the largest scars first, or as asked."""
        asked = forms.wanted(forms.REGIONS, visit.fields)
        views, found, known = self.ask(questions.regions, asked)
        for view in views:
            line = view["course"]
            view["spark"] = charts.spark(line["H"]), charts.spark(line["G"])
        values = {**self._list(visit, forms.REGIONS, asked), "views": views, "found": found,
                  "known": known}  # fmt: skip
        if "hx-request" in visit.request.headers:
            return self.site.bare("_regions.html", **values)
        return self.site.render(visit, "regions.html", **values)

    def _list(self, visit: Visit, table: Table, asked: forms.Wanted) -> dict[str, Any]:
        """What every page with a list needs to draw its filters and heads."""
        return {
            "asked": asked,
            "table": table,
            "links": forms.Links(table, visit.fields, asked),
            "given": {name: visit.one(name) for name in ("from", "to")},
        }

    def region(self, visit: Visit) -> Response:
        """Everything about one region: state, course, chain, and what may be done."""
        name = visit.region()
        chain = self.ask(Gate.chain, name)
        course = chain["course"]
        drawn = charts.over_time(
            "Trace G and scar H", course["at"], {"G": course["G"], "H": course["H"]}, 520, 170
        )
        now = {part: [words] for part, words in chain["region"]["label"].items()}
        if chain["region"]["override"]:
            now["psi"] = [f"{chain['region']['override']['psi']:g}"]
        return self.site.render(
            visit, "region.html", view=chain["region"], chain=chain, chart=drawn,
            config=self.gate.config, forms=self._forms(visit, "region", now),
        )  # fmt: skip

    def _forms(self, visit: Visit, place: str, now: forms.Fields) -> dict[str, Any]:
        """Forms of the actions about something, by name, filled with what holds now."""
        return {
            name: (action, forms.inputs(action, now, leave_out=("region", "reports", "source")))
            for name, action in ACTIONS.items()
            if visit.session.may(action.scope) and (place in forms.about(action) if place
                                                    else not forms.about(action))
        }  # fmt: skip

    def queue(self, visit: Visit) -> Response:
        """Reports that wait for a reviewer."""
        asked = forms.wanted(forms.QUEUE, {"top": ["200"], **visit.fields})
        items, count = self.ask(questions.waiting, asked)
        return self.site.render(
            visit, "queue.html", items=items, count=count, waits=WAIT_WORDS,
            config=self.gate.config, all_chosen=visit.one("all") == "yes",
            **self._list(visit, forms.QUEUE, asked),
        )  # fmt: skip

    def reporters(self, visit: Visit) -> Response:
        """Who reported."""
        asked = forms.wanted(forms.REPORTERS, {"top": ["200"], **visit.fields})
        found, count = self.ask(questions.who_reported, asked)
        return self.site.render(
            visit, "reporters.html", reporters=found, count=count,
            **self._list(visit, forms.REPORTERS, asked),
        )  # fmt: skip

    def decisions(self, visit: Visit) -> Response:
        """Decisions: the newest first, or as asked."""
        asked = forms.wanted(forms.DECISIONS, visit.fields)
        found, whole = self.ask(questions.decisions, asked)
        return self.site.render(
            visit, "decisions.html", decisions=found, whole=whole,
            **self._list(visit, forms.DECISIONS, asked),
        )  # fmt: skip

    def decision(self, visit: Visit) -> Response:
        """How much a decision was changed, and because of which reports."""
        named = visit.exact("id")
        why = self.ask(Gate.explain, named)
        return self.site.render(visit, "decision.html", d=why)

    def bias(self, visit: Visit) -> Response:
        """Gating and reports by group and topic."""
        found = self.ask(Gate.bias)
        tables = {kind: _drawn(entries) for kind, entries in found.items()}
        return self.site.render(visit, "bias.html", tables=tables)

    def policy(self, visit: Visit) -> Response:
        """The mode, the settings in force, and what people did."""
        config = self.gate.config
        values = config.to_dict()
        fields = values.pop("params")
        mode, percent = self.gate.read(lambda state: (state.mode, state.percent))
        now = {"mode": [mode], "percent": [f"{percent:g}"]}
        return self.site.render(
            visit, "policy.html", settings=values, fields=fields,
            words={"settings": SETTING_WORDS, "fields": FIELD_WORDS},
            deeds=self.ask(deeds), digest=config.digest(),
            forms=self._forms(visit, "", now),
            others=[a for a in ACTIONS.values() if forms.about(a) and visit.session.may(a.scope)],
        )  # fmt: skip

    def find(self, visit: Visit) -> Response:
        """Go to the region or the decision of an id, else to the regions that have it in them."""
        words = visit.one("q")
        same = self.ask(questions.named, words)
        if len(same) == 1:
            return redirect(f"/region?{region_query(same[0])}")
        if words and decision_key(words) in self.gate.store.find([decision_key(words)]):
            return redirect("/decision?" + urlencode({"id": words}))
        return redirect("/regions?" + urlencode({"q": words}))

    # --- what is done

    def propose(self, visit: Visit) -> Response:
        """Show what an action would do and ask for a reason; without fields, ask for those."""
        self._check_scope(visit)
        try:
            if visit.fields:
                return self._dry(visit, self._proposal(visit))
        except ValueError as error:
            return self._form(visit, str(error))
        return self._form(visit)

    def act(self, visit: Visit) -> Response:
        """Do it, if there is a reason."""
        self._check_scope(visit)
        reason = visit.one("reason")
        try:
            proposal = self._proposal(visit)
            try:
                checked_reason(reason)
            except ValueError as error:
                words = str(error) if reason else "Nothing was changed: an action needs a reason."
                return self._dry(visit, proposal, words, reason)
            done = proposal.made(reason, visit.session.name, dry_run=False)
            effect = self.gate.act(done)
        except ValueError as error:
            return self._form(visit, str(error))
        visit.session.notice = _summary(effect, done.title())
        return redirect(proposal.back)

    def _check_scope(self, visit: Visit) -> None:
        scope = forms.action_named(visit.request.path_params["kind"]).scope
        if not visit.session.may(scope):
            raise RefusedError(403, f"this needs a key of scope {scope}; log in with one")

    def _proposal(self, visit: Visit) -> Proposal:
        return forms.proposal(visit.request.path_params["kind"], visit.fields, self.clock)

    def _form(self, visit: Visit, problem: str = "") -> Response:
        action = forms.action_named(visit.request.path_params["kind"])
        return self.site.render(
            visit, "form.html", 422 if problem else 200, action=action, problem=problem,
            inputs=forms.inputs(action, visit.fields),
        )  # fmt: skip

    def _dry(
        self, visit: Visit, proposal: Proposal, problem: str = "", reason: str = ""
    ) -> Response:
        tried = proposal.made("", visit.session.name, dry_run=True)
        effect = self.ask(questions.dry_run, tried)
        return self.site.render(
            visit, "action.html", 422 if problem else 200, proposal=proposal, effect=effect,
            title=tried.title(), about=tried.meaning(self.gate.config), problem=problem,
            shown=effect.regions[:EFFECTS_SHOWN], reason=reason, action=visit.request.url.path,
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
