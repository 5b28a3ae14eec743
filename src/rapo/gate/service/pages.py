"""The reviewer's page: what the gate knows, on pages that need no script."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from rapo.gate import audit
from rapo.gate.acts import checked_reason
from rapo.gate.events import Region, decision_key, unpack_decision
from rapo.gate.gate import Gate
from rapo.gate.service import charts, meanings
from rapo.gate.service.assets import Assets
from rapo.gate.service.body import RefusedError
from rapo.gate.service.courses import courses
from rapo.gate.service.deeds import deeds
from rapo.gate.service.keys import Keys
from rapo.gate.service.login import add_login
from rapo.gate.service.numerals import region_query
from rapo.gate.service.proposals import ACTIONS, EXPIRIES, Clock, Proposal, summary
from rapo.gate.service.sessions import Attempts, Sessions
from rapo.gate.service.visit import Desk, Handler, Visit, redirect
from rapo.gate.state import State

MOST_REGIONS = 500
"""Regions of one table."""
DECISIONS_SHOWN = 50
EFFECTS_SHOWN = 100
"""Regions of a dry run that are listed."""


def make_pages(gate: Gate, keys: Keys, *, clock: Clock = time.time) -> APIRouter:
    """The routes of the reviewer's page, with sessions of their own.

    Args:
        gate: what is reviewed.
        keys: a key of scope review opens the page, one of scope admin also the mode.
        clock: Unix seconds, the gate's own; overrides end by it.
    """
    router = APIRouter(include_in_schema=False)
    desk = Desk(gate, Sessions(), Assets())
    pages = Pages(desk, clock)
    routes: list[tuple[str, Handler, list[str]]] = [
        ("/", pages.overview, ["GET"]),
        ("/overview/live", pages.live, ["GET"]),
        ("/regions", pages.regions, ["GET"]),
        ("/region", pages.region, ["GET"]),
        ("/queue", pages.queue, ["GET"]),
        ("/reporters", pages.reporters, ["GET"]),
        ("/decisions", pages.decisions, ["GET"]),
        ("/decision", pages.decision, ["GET"]),
        ("/bias", pages.bias, ["GET"]),
        ("/policy", pages.policy, ["GET"]),
        ("/find", pages.find, ["GET"]),
        ("/actions/{kind}", pages.propose, ["GET"]),
        ("/actions/{kind}", pages.act, ["POST"]),
    ]
    for path, handler, methods in routes:
        router.add_route(path, desk.page(handler), methods, include_in_schema=False)
    add_login(router, desk, keys, Attempts())

    async def static(request: Request) -> Response:
        return await desk.assets.serve(request)

    router.add_route("/static/{name:path}", static, ["GET"], include_in_schema=False)
    return router


class Pages:
    """A method for every page."""

    def __init__(self, desk: Desk, clock: Clock) -> None:
        self.desk, self.gate, self.clock = desk, desk.gate, clock

    # --- what is shown

    def overview(self, visit: Visit) -> Response:
        """The gate at a glance."""
        return self.desk.render(visit, "overview.html", **self._overview())

    def live(self, visit: Visit) -> Response:
        """The part of the overview that changes."""
        return self.desk.bare("_live.html", **self._overview())

    def _overview(self) -> dict[str, Any]:
        seen = self.gate.read(audit.overview)
        found = self.gate.read(audit.outcomes)
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
            "bands": meanings.BANDS,
        }

    def regions(self, visit: Visit) -> Response:
        """Regions by scar, or those whose name has some words in it."""
        words, top = visit.one("q"), _whole(visit.one("top", "50"), 1, MOST_REGIONS)
        views, found, known = self.gate.read(lambda state: _regions(state, words, top))
        lines = courses(self.gate, [v["region"] for v in views])
        for view, line in zip(views, lines, strict=True):
            view["spark"] = charts.spark(line["H"]), charts.spark(line["G"])
        values = {"views": views, "found": found, "known": known, "words": words, "top": top}
        if "hx-request" in visit.request.headers:
            return self.desk.bare("_regions.html", **values)
        return self.desk.render(visit, "regions.html", **values)

    def region(self, visit: Visit) -> Response:
        """Everything about one region: state, course, chain, and what may be done."""
        name = visit.region()
        chain = self.gate.read(lambda state: audit.chain(state, self.gate.store, name))
        course = chain["course"]
        drawn = charts.over_time(
            "Trace G and scar H", course["at"], {"G": course["G"], "H": course["H"]}, 820, 200
        )
        return self.desk.render(
            visit, "region.html", view=chain["region"], chain=chain, chart=drawn,
            config=self.gate.config, expiries=EXPIRIES,
        )  # fmt: skip

    def queue(self, visit: Visit) -> Response:
        """Reports that wait for a reviewer."""
        items = self.gate.read(audit.queue)
        return self.desk.render(
            visit, "queue.html", items=items, waits=meanings.WAITS, config=self.gate.config
        )

    def reporters(self, visit: Visit) -> Response:
        """Who reported."""
        return self.desk.render(visit, "reporters.html", reporters=self.gate.read(audit.reporters))

    def decisions(self, visit: Visit) -> Response:
        """The newest decisions, and a search."""
        found = []
        store = self.gate.store
        for event in store.read(0, DECISIONS_SHOWN, ("Decision",), newest=True):
            body = unpack_decision(event.body)
            moved = float(np.abs(body.p / body.p.sum() - body.gated).sum() / 2)
            found.append({
                "id": (event.key or "").partition("\x1f")[2], "at": event.at,
                "candidates": body.p.size, "moved": moved, "applied": body.enforced,
                "stimulus": body.stimulus,
            })  # fmt: skip
        return self.desk.render(visit, "decisions.html", decisions=found)

    def decision(self, visit: Visit) -> Response:
        """How much a decision was changed, and because of which reports."""
        named = visit.exact("id")
        why = self.gate.read(lambda state: audit.explain(state, self.gate.store, named))
        return self.desk.render(visit, "decision.html", d=why)

    def bias(self, visit: Visit) -> Response:
        """Gating and reports by group and topic."""
        found = self.gate.read(audit.bias)
        tables = {kind: _drawn(entries) for kind, entries in found.items()}
        return self.desk.render(visit, "bias.html", tables=tables)

    def policy(self, visit: Visit) -> Response:
        """The mode, the settings in force, and what people did."""
        config = self.gate.config
        values = config.to_dict()
        fields = values.pop("params")
        return self.desk.render(
            visit, "policy.html", settings=values, fields=fields, meanings=meanings,
            deeds=deeds(self.gate.store), digest=config.digest(),
        )  # fmt: skip

    def find(self, visit: Visit) -> Response:
        """Go to the region or the decision of an id, else to the regions that have it in them."""
        words = visit.one("q")
        same = self.gate.read(lambda s: [r for r in s.regions.names if str(r) == words])
        if len(same) == 1:
            return redirect(f"/region?{region_query(same[0])}")
        if words and decision_key(words) in self.gate.store.find([decision_key(words)]):
            return redirect("/decision?" + urlencode({"id": words}))
        return redirect("/regions?" + urlencode({"q": words}))

    # --- what is done

    def propose(self, visit: Visit) -> Response:
        """Show what an action would do, and ask for a reason."""
        return self._dry(visit, self._proposal(visit))

    def act(self, visit: Visit) -> Response:
        """Do it, if there is a reason."""
        proposal, reason = self._proposal(visit), visit.one("reason")
        try:
            checked_reason(reason)
        except ValueError as error:
            words = str(error) if reason else "Nothing was changed: an action needs a reason."
            return self._dry(visit, proposal, words, reason)
        effect = proposal.run(False, reason, visit.session.name)
        visit.session.notice = summary(effect, proposal)
        return redirect(proposal.back)

    def _proposal(self, visit: Visit) -> Proposal:
        kind = str(visit.request.path_params["kind"])
        if kind not in ACTIONS:
            raise LookupError(f"there is no action {kind!r:.40}")
        scope, read = ACTIONS[kind]
        if not visit.session.may(scope):
            raise RefusedError(403, f"this needs a key of scope {scope}; log in with one")
        return read(self.gate, visit, self.clock)

    def _dry(
        self, visit: Visit, proposal: Proposal, problem: str = "", reason: str = ""
    ) -> Response:
        effect = proposal.run(True, "", visit.session.name)
        return self.desk.render(
            visit, "action.html", 422 if problem else 200, proposal=proposal, effect=effect,
            shown=effect.regions[:EFFECTS_SHOWN], problem=problem, reason=reason,
            action=visit.request.url.path,
        )  # fmt: skip


def _regions(state: State, words: str, top: int) -> tuple[list[dict[str, Any]], int, int]:
    """Views of up to `top` regions by scar, how many there are, how many are known."""
    known = len(state.regions)
    if not words:
        return audit.top_regions(state, top), known, known
    wanted = words.casefold()
    hits: list[tuple[bool, float, float, Region]] = []
    for i, name in enumerate(state.regions.names):
        text = str(name).casefold()
        if wanted in text:
            hits.append((text != wanted, -state.fold.H[i], -state.fold.G[i], name))
    hits.sort(key=lambda hit: hit[:3])
    return [audit.region_view(state, hit[3]) for hit in hits[:top]], len(hits), known


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


def _whole(word: str, low: int, high: int) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) < 10):
        raise ValueError(f"a whole number was expected, got {word!r:.40}")
    return min(max(int(word), low), high)
