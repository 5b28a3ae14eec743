"""The reviewer's page over HTTP: what is shown, what is done."""

from __future__ import annotations

import re
import runpy
import time
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import pytest

from rapo_gate import GateConfig, StoreError, audit
from rapo_gate.format import FIELD_WORDS, SETTING_WORDS, region_query
from rapo_gate.service.app import HEADERS

REVIEWER = runpy.run_path(str(Path(__file__).with_name("reviewer.py")))
PAGES = REVIEWER["PAGES"]
opened = REVIEWER["opened"]
new_client = REVIEWER["new_client"]
logged_in = REVIEWER["logged_in"]
csrf = REVIEWER["csrf"]
do = REVIEWER["do"]
STREAM = runpy.run_path(str(Path(__file__).with_name("stream.py")))
EVIL, SPAMMED, CAMPAIGN = STREAM["EVIL"], STREAM["SPAMMED"], STREAM["CAMPAIGN"]


# --- what is shown


class Checker(HTMLParser):
    """Finds what a strict policy would block, ids that occur twice, fields without a label."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: set[str] = set()
        self.labels: set[str] = set()
        self.fields: list[tuple[str, dict[str, str | None]]] = []
        self.open_labels = 0
        self.feed(page)
        for tag, given in self.fields:
            if given.get("id") not in self.labels and "aria-label" not in given:
                self.found.append(f"no label: {tag} {given}")

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        for name in given:
            if name == "style" or name.startswith("on"):
                self.found.append(f"inline {name} at {tag}")
        if tag == "style" or (tag == "script" and not given.get("src")):
            self.found.append(f"inline {tag}")
        for name in ("src", "href", "action", "hx-get"):
            if re.match(r"\s*(?:\w+:|//)", given.get(name) or ""):
                self.found.append(f"elsewhere: {given[name]}")
        if given.get("id") in self.ids:
            self.found.append(f"id twice: {given['id']}")
        self.ids |= {given["id"]} if "id" in given else set()
        if tag == "label":
            self.open_labels += 1
            self.labels |= {given["for"]} if "for" in given else set()
        hidden = given.get("type") == "hidden"
        if tag in ("input", "select", "textarea") and not hidden and not self.open_labels:
            self.fields.append((tag, given))

    def handle_endtag(self, tag):
        self.open_labels -= tag == "label"


def every_page(client) -> list[str]:
    decision = re.search(r"/decision\?id=\w+", client.get("/decisions").text)[0]
    regions = [f"/region?{region_query(name)}" for name in (EVIL, "chess", "..", 101)]
    return [
        *PAGES, *regions, decision, f"/regions?{urlencode({'q': EVIL})}", "/region?name=nope",
        f"/actions/rollback?{urlencode({'source': CAMPAIGN})}",
        f"/actions/override?{urlencode({'name': EVIL, 'psi': '0.5', 'expires_at': ''})}",
        f"/actions/allow?{urlencode({'name': EVIL})}",
    ]  # fmt: skip


def test_every_page_keeps_the_policy_and_escapes_what_users_wrote(gate, client):
    reason = "<img src=x onerror=alert(1)>"
    assert (
        do(client, "override", reason, name=EVIL, psi="0.5", expires_at="3600").status_code == 303
    )
    pages = every_page(client)
    for page in pages:
        answer = client.get(page)
        assert answer.status_code == (404 if "nope" in page else 200), page
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, (page, name)
        assert "<script>alert" not in answer.text and "<img" not in answer.text, page
        assert "<b>anonymous" not in answer.text, page
        assert Checker(answer.text).found == [], page
    assert "&lt;script&gt;alert" in client.get("/regions").text
    assert "&lt;img src=x" in client.get("/policy").text
    login = new_client(gate).get("/login")
    assert Checker(login.text).found == []


def test_the_overview_has_the_numbers(gate, client):
    seen, page = gate.read(audit.overview), client.get("/").text
    assert f"{seen['regions_gated']} of {seen['regions']} regions" in page
    assert f"{100 * seen['gating']:.1f} %" in page
    for words in ("Fresh", "Shadow mode" if seen["mode"] == "shadow" else "Enforcing", "RAG"):
        assert words in page
    assert page.count("<figure") == 6
    assert all(bool(band) and words in page for band, words in seen["alarms"].items() if band)


def test_regions_of_any_name_have_a_page(gate, client):
    assert {"..", "news/local & weather", "12", 101, EVIL} <= set(gate.fields())
    for name in [*STREAM["ODD"], 101]:
        page = client.get(f"/region?{region_query(name)}")
        assert page.status_code == 200, name
    assert client.get("/region?number=12").status_code == 404  # 12 is there as a string
    assert client.get("/region?name=101").status_code == 404
    for wrong in ("/region", "/region?name=", "/region?number=x", "/region?number=" + "9" * 30):
        assert client.get(wrong).status_code == 422


def test_a_region_shows_its_chain(gate, client):
    page = client.get(f"/region?name={SPAMMED.replace(' ', '+')}").text
    chain = gate.chain(SPAMMED)
    assert CAMPAIGN in page and "survey" in page and "<path" in page
    assert str(chain["reports"][0]["report_id"]) in page
    assert chain["decisions"][0]["decision_id"] in page
    why = client.get(f"/decision?id={chain['decisions'][0]['decision_id']}").text
    assert "changed by" in why and SPAMMED in why and CAMPAIGN in why


def test_search_and_find(gate, client):
    page = client.get("/regions?q=CRIME").text
    assert "1 of" in page and "true crime" in page and "chess" not in page
    part = client.get("/regions?q=crime", headers={"HX-Request": "true"}).text
    assert "<html" not in part and "true crime" in part
    assert "No region contains" in client.get("/regions?q=zzz").text
    assert client.get("/find?q=chess").headers["location"] == "/region?name=chess"
    assert client.get("/find?q=101").headers["location"] == "/region?number=101"
    decision = re.search(r"/decision\?id=(\w+)", client.get("/decisions").text)[1]
    assert client.get(f"/find?q={decision}").headers["location"].endswith(decision)
    assert client.get("/find?q=cri").headers["location"] == "/regions?q=cri"
    assert client.get("/decision?id=nope").status_code == 404
    assert client.get("/regions?top=many").status_code == 422


def rows(page: str) -> list[str]:
    return re.findall(r"<tr>\s*<th scope=\"row\">.*?</tr>", page, re.S)


def test_regions_are_narrowed_and_sorted(gate, client):
    fields = gate.fields()
    gated = {str(r) for r, f in fields.items() if f.psi < 1}
    assert len(rows(client.get("/regions?only=gated&top=500").text)) == len(gated)
    scarred = sum(f.H > 0 for f in fields.values())
    assert len(rows(client.get("/regions?only=scarred").text)) == scarred
    for column, value in (("psi", lambda f: f.psi), ("G", lambda f: f.G), ("H", lambda f: f.H)):
        for order, pick in (("up", min), ("down", max)):
            first = rows(client.get(f"/regions?sort={column}&order={order}").text)[0]
            best = pick(value(f) for f in fields.values())
            assert any(
                f">{escape(str(r))}<" in first for r, f in fields.items() if value(f) == best
            )
    now = time.time()
    recent = client.get(f"/regions?from={now - 3 * 3600}&to={now + 60}&top=500").text
    reported = gate.read(lambda s: len({int(r) for r in s.ledger.rows["region"]}))
    assert len(rows(recent)) == reported
    assert rows(client.get(f"/regions?to={now - 90 * 86400}").text) == []
    for wrong in ("sort=nope", "only=nope", "from=yesterday", "to=nan", "top=x"):
        assert client.get(f"/regions?{wrong}").status_code == 422


def test_decisions_are_narrowed_to_a_time_and_sorted(gate, client):
    events = [e for e in gate.events(0, 10**6) if e.kind == "Decision"]
    middle = events[len(events) // 2].at
    before = client.get(f"/decisions?to={middle}&top=500").text
    after = client.get(f"/decisions?from={middle}&top=500").text
    assert len(rows(before)) == min(500, sum(e.at < middle for e in events))
    assert len(rows(after)) == min(500, sum(e.at >= middle for e in events))
    changed = rows(client.get("/decisions?only=changed&sort=moved&order=down&top=500").text)
    moved = [float(re.search(r"([\d.]+) %", row)[1]) for row in changed]
    assert moved and moved == sorted(moved, reverse=True)
    assert rows(client.get("/decisions?q=no-such-story").text) == []


def test_the_queue_and_the_reporters_are_narrowed_and_sorted(gate, client):
    items = gate.queue()
    for why in {r["waits_for"] for r in items}:
        page = client.get(f"/queue?{urlencode({'only': why})}").text
        assert page.count('name="reports"') == sum(r["waits_for"] == why for r in items)
    page = client.get("/queue?sort=harm&order=up").text
    harms = [r["report_id"] for r in sorted(items, key=lambda r: r["harm"])]
    assert re.findall(r'name="reports" value="(\d+)"', page)[0] == str(harms[0])
    assert client.get("/queue?all=yes").text.count("checked") == len(items) + 1
    who = gate.reporters()
    page = client.get("/reporters?sort=source&order=up").text
    names = [r["source"] for r in who]
    assert len(rows(page)) == len(names) and escape(min(names)) in rows(page)[0]
    assert len(rows(client.get(f"/reporters?q={CAMPAIGN}").text)) == 1
    assert rows(client.get("/reporters?only=out").text) == []
    middle = sorted(r["at"] for r in items)[len(items) // 2]
    page = client.get(f"/queue?to={middle}").text
    assert page.count('name="reports"') == sum(r["at"] < middle for r in items) < len(items)
    last = max(r["last_at"] for r in who)
    page = client.get(f"/reporters?from={last}").text
    assert len(rows(page)) == sum(r["last_at"] >= last for r in who) < len(who)


def test_titles_and_links_of_labels_are_shown(gate, client):
    label = {"title": "Chess & friends", "url": "https://example.org/chess?a=1&b=2"}
    gate.label({"chess": label}, reason="for people")
    page = client.get("/region?name=chess").text
    assert "Chess &amp; friends" in page and "https://example.org/chess?a=1&amp;b=2" in page
    assert 'rel="noopener noreferrer"' in page
    assert "Chess &amp; friends" in client.get("/regions?q=FRIENDS").text
    for bad in ("javascript:alert(1)", "data:text/html,x", "ftp://x", "//x.example"):
        with pytest.raises(ValueError, match="url"):
            gate.label({"chess": {"url": bad}}, reason="r")


def test_letters_are_explained_beside_the_figures(client):
    for page in ("/", "/regions", "/region?name=chess", "/decisions"):
        text = client.get(page).text
        assert "What the letters mean" in text and text.count('title="') > 2


def test_bias_says_in_words_what_differs(gate, client):
    found, page = gate.read(audit.bias), client.get("/bias").text
    rates = [
        r for kind in found.values() for e in kind for r in (e["gating_rate"], e["report_rate"])
    ]
    rates += [s[k] for kind in found.values() for e in kind for s in e["signals"]
              for k in ("report_rate", "rolled_back")]  # fmt: skip
    differing = sum(r["differs"] for r in rates)
    assert differing and page.count(">differs</strong>") == differing


def test_a_gate_that_saw_nothing_has_pages(tmp_path):
    with opened(tmp_path / "new.db") as gate:
        client = logged_in(gate, "admin")
        for page in PAGES:
            answer = client.get(page)
            assert answer.status_code == 200, page
            assert Checker(answer.text).found == [], page
        assert "Nothing waits" in client.get("/queue").text


def test_every_setting_has_a_meaning():
    values = GateConfig().to_dict()
    assert set(values.pop("params")) == set(FIELD_WORDS)
    assert set(values) == set(SETTING_WORDS)


def test_files_are_served_for_long_and_by_their_content(client):
    page = client.get("/").text
    names = re.findall(r'"(/static/[^"]+)"', page)
    assert len(names) == 4
    for name in names:
        answer = client.get(name)
        assert answer.status_code == 200 and "immutable" in answer.headers["cache-control"]
        kind = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
        assert answer.headers["content-type"].startswith(
            kind[name.partition("?")[0].split(".")[-1]]
        )
        again = client.get(name, headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
    assert client.get("/static/page.css").headers["cache-control"] == "no-cache"
    for wrong in ("/static/nope.css", "/static/..%2Fpages.py", "/static/vendor/README.md"):
        assert client.get(wrong).status_code == 404


def test_a_store_out_of_reach_is_told_without_its_address(gate, client, monkeypatch):
    def fail(*_, **__):
        raise StoreError("/secret/place: disk I/O error")

    monkeypatch.setattr(gate.store, "read", fail)
    answer = client.get("/decisions")
    assert answer.status_code == 503 and "/secret" not in answer.text
