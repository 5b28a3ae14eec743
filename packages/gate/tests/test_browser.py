"""The reviewer's page in a real browser: keyboard only, strict policy, light and dark."""

from __future__ import annotations

import os
import runpy
import shutil
import socket
import threading
import warnings
from pathlib import Path
from urllib.parse import urlencode

import pytest
import uvicorn
from chromium import watched
from waiting import until

from rapo_gate import Gate
from rapo_gate.service.app import make_app
from rapo_gate.service.auth import Keys

STREAM = runpy.run_path(str(Path(__file__).with_name("stream.py")))
EVIL, SPAMMED, CAMPAIGN = STREAM["EVIL"], STREAM["SPAMMED"], STREAM["CAMPAIGN"]
KEYS = {"review": "key-review", "admin": "key-admin"}
SECONDS = 30_000
"""Most milliseconds that a page may take: test machines may be busy."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("browser") / "gate.db"
    STREAM["fill"](path, 120).close()
    return path


@pytest.fixture
def gate(filled, tmp_path):
    shutil.copy(filled, tmp_path / "gate.db")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = Gate.open(tmp_path / "gate.db")
    with opened:
        yield opened


@pytest.fixture
def site(gate):
    """Address of a server of the gate."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = uvicorn.Config(make_app(gate, Keys.of(KEYS)), port=port, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started, thread.is_alive)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def page(browser, site):
    """A page that remembers every complaint and every request."""
    context = browser.new_context(viewport={"width": 1366, "height": 768}, base_url=site)
    page = watched(context, SECONDS)
    yield page
    context.close()


def log_in(page, scope="review"):
    page.goto("/")
    page.wait_for_function("() => document.activeElement.id === 'key'")  # by itself
    page.keyboard.type(KEYS[scope])
    page.keyboard.press("Enter")
    page.wait_for_selector("#live")


def tab_to(page, words, most=80):
    """Press Tab until what has the focus says `words`; every stop on the way can be seen."""
    for _ in range(most):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            """() => {
                const e = document.activeElement;
                const label = e.labels && e.labels.length ? e.labels[0].textContent : "";
                const style = getComputedStyle(e);
                return [label + " " + (e.getAttribute("aria-label") || e.textContent || ""),
                        style.outlineStyle + " " + style.outlineWidth];
            }"""
        )
        assert outline.startswith("solid") and outline != "solid 0px", (name, outline)
        if words in " ".join(name.split()):
            return
    raise AssertionError(f"{words!r} cannot be reached with the keyboard")


def clean(page, site):
    assert page.complaints == []
    assert [url for url in page.asked if not url.startswith((site, "data:"))] == []


def test_the_overview_has_numbers_and_refreshes_without_losing_the_focus(page, site, gate):
    log_in(page)
    assert page.inner_text("dl.cards").count("\n") > 20
    assert page.locator("figure.chart path.line").count() == 6
    tab_to(page, "Skip to the content")
    page.focus("#to-queue")
    before = page.evaluate("document.querySelector('.cards')._mark = 1")
    gate.decide(["chess", "cats"], [0.5, 0.5])
    with page.expect_response("**/overview/live", timeout=SECONDS):
        pass
    page.wait_for_function("() => document.querySelector('.cards')._mark === undefined")
    assert before == 1 and page.evaluate("document.activeElement.id") == "to-queue"
    page.focus("#chart-2")
    page.keyboard.press("ArrowLeft")
    assert ":" in page.inner_text("#chart-2 .readout")
    page.click("#pause")
    assert page.get_attribute("#pause", "aria-pressed") == "true"
    clean(page, site)


def test_a_reporter_is_rolled_back_with_the_keyboard_alone(page, site, gate):
    before = gate.fields()[SPAMMED].psi
    assert before < 0.5
    log_in(page)
    tab_to(page, "Reporters")
    page.keyboard.press("Enter")
    page.wait_for_url("**/reporters")
    tab_to(page, f"Roll back everything from {CAMPAIGN}")
    page.keyboard.press("Enter")
    page.wait_for_url("**/actions/rollback?*")
    row = page.locator("tbody tr", has_text=SPAMMED)
    shown = [float(t.strip("<>")) for t in row.locator("td.num").all_inner_texts()[:2]]
    assert shown[0] == pytest.approx(before, abs=0.05) and shown[1] >= 0.9
    tab_to(page, "Roll back")
    page.keyboard.press("Enter")
    page.wait_for_selector("#problem")
    assert "needs a reason" in page.inner_text("#problem")
    assert page.evaluate("document.activeElement.id") == "reason"
    assert gate.fields()[SPAMMED].psi < 0.5
    assert not gate.read(lambda state: state.rollbacks)
    page.keyboard.type("one person with many forms")
    tab_to(page, "Roll back")
    assert all("422" in words for words in page.complaints)  # the refusal of the empty reason
    page.complaints.clear()
    page.keyboard.press("Enter")
    page.wait_for_url("**/reporters")
    assert "Done: Roll back everything" in page.inner_text(".notice")
    assert gate.fields()[SPAMMED].psi >= 0.9
    page.goto("/region?" + urlencode({"name": SPAMMED}))
    assert float(page.inner_text("dl.cards dd >> nth=0").strip("<>")) >= 0.9
    clean(page, site)


def test_an_override_is_set_with_the_keyboard_alone(page, site, gate):
    log_in(page)
    tab_to(page, "Region or decision id")
    page.keyboard.type("gardening")
    page.keyboard.press("Enter")
    page.wait_for_url("**/region?name=gardening")
    tab_to(page, "ψ")
    page.keyboard.press("Control+A")
    page.keyboard.type("0.7")
    tab_to(page, "Override…")
    page.keyboard.press("Enter")
    page.wait_for_url("**/actions/override?*")
    assert "0.700" in page.inner_text("main")
    tab_to(page, "Reason")
    page.keyboard.type("a hosepipe ban")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/region?name=gardening")
    assert gate.fields()["gardening"].psi == 0.7
    assert "a hosepipe ban" in page.inner_text("main")
    clean(page, site)


def test_regions_are_searched_while_typing(page, site):
    log_in(page)
    page.goto("/regions")
    page.focus("#text")
    page.keyboard.type("crime")
    page.wait_for_function("() => document.querySelectorAll('#list tbody tr').length === 1")
    assert page.evaluate("document.activeElement.id") == "text"
    clean(page, site)


def test_a_region_called_script_does_nothing(page, site):
    log_in(page)
    page.on("dialog", lambda dialog: page.complaints.append(dialog.message))
    page.goto("/region?" + urlencode({"name": EVIL}))
    assert page.inner_text("h1") == EVIL
    page.goto("/regions")
    page.click(f"text={EVIL}")
    page.wait_for_selector("#course")
    clean(page, site)


def test_without_scripts_everything_can_be_done(browser, site, gate):
    context = browser.new_context(java_script_enabled=False, base_url=site)
    page = watched(context, SECONDS)
    page.goto("/")
    page.fill("#key", KEYS["review"])
    page.click("text=Log in")
    page.wait_for_selector("dl.cards")
    page.goto("/queue")
    page.check("tbody tr:first-child input")
    page.click("text=Roll back the chosen…")
    page.fill("#reason", "seen by hand")
    page.click("button.main")
    page.wait_for_url("**/queue")
    assert "Done: Roll back report" in page.inner_text(".notice")
    assert gate.read(lambda state: len(state.rollbacks)) == 1
    clean(page, site)
    context.close()


def test_one_box_chooses_all_that_wait(page, site, gate):
    log_in(page)
    page.goto("/queue")
    boxes = page.locator("input[name=reports]")
    count = boxes.count()
    assert count > 2
    page.check("#all")
    assert page.locator("input[name=reports]:checked").count() == count
    boxes.first.uncheck()
    assert page.evaluate("document.querySelector('#all').indeterminate")
    page.check("#all")
    page.click("text=Roll back the chosen…")
    page.wait_for_selector("#reason")
    assert page.locator("form.stack input[name=reports]").count() == count
    clean(page, site)


def test_lists_are_sorted_and_narrowed_without_scripts(browser, site, gate):
    context = browser.new_context(java_script_enabled=False, base_url=site)
    page = watched(context, SECONDS)
    page.goto("/")
    page.fill("#key", KEYS["review"])
    page.click("text=Log in")
    page.goto("/regions")
    page.click("thead >> text=Region")
    names = page.locator("tbody th bdi").all_inner_texts()
    assert names == sorted(names, key=str.casefold)
    page.select_option("#only", "hand")
    page.click(".filters button")
    assert page.locator("tbody tr").count() == 2
    page.goto("/queue")
    count = page.locator("input[name=reports]").count()
    page.click("thead a[href*='all=yes']")
    assert page.locator("input[name=reports]:checked").count() == count
    clean(page, site)
    context.close()


@pytest.mark.parametrize("width", [1366, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_a_laptop_and_a_phone(browser, site, gate, scheme, width):
    """No page is wider than the screen; with RAPO_SHOTS=folder the pictures are kept."""
    context = browser.new_context(
        viewport={"width": width, "height": 768}, base_url=site, color_scheme=scheme
    )
    page = watched(context, SECONDS)
    log_in(page, "admin")
    chain = gate.chain(SPAMMED)
    pages = {
        "overview": "/",
        "regions": "/regions",
        "region": "/region?" + urlencode({"name": SPAMMED}),
        "override": "/region?name=chess",
        "queue": "/queue",
        "reporters": "/reporters",
        "decisions": "/decisions",
        "decision": "/decision?" + urlencode({"id": chain["decisions"][0]["decision_id"]}),
        "bias": "/bias",
        "policy": "/policy",
        "action": "/actions/rollback?" + urlencode({"source": CAMPAIGN}),
        "nothing": "/regions?q=nothing",
        "form": "/actions/rollback",
    }
    for name, address in pages.items():
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        folder = os.environ.get("RAPO_SHOTS")
        if folder:
            page.screenshot(path=f"{folder}/{name}-{width}-{scheme}.png", full_page=True)
    clean(page, site)
    context.close()


def test_on_a_phone_what_somebody_judges_is_read_without_moving_sideways(browser, site):
    context = browser.new_context(viewport={"width": 390, "height": 844}, base_url=site)
    page = watched(context, SECONDS)
    log_in(page, "admin")
    cut = """() => [...document.querySelectorAll(".stacked, .fit, nav a, .filters *")]
        .filter((e) => e.getBoundingClientRect().right > innerWidth).length"""
    for address in (
        "/queue",
        "/bias",
        "/policy",
        "/reporters",
        "/actions/rollback?" + urlencode({"source": CAMPAIGN}),
    ):
        page.goto(address)
        assert page.locator(".stacked, .fit, .filters").count()
        assert page.evaluate(cut) == 0, address
    clean(page, site)
    context.close()
