"""The page in a real browser: every control, what is copied, what is wrong, keyboard and sizes."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rapo.lab.numbers import ROWS

CHROMIUM = Path("/usr/bin/chromium")
sync_api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
pytestmark = pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"the browser tests need Chromium at {CHROMIUM}"
)
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 300_000
"""Most milliseconds that the page may take: test machines may be busy."""


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield chromium
        chromium.close()


def opened(browser, lab, **options):
    """A page with numbers on it, that remembers every complaint and every request."""
    options = {"viewport": {"width": 1280, "height": 900}, **options}
    context = browser.new_context(base_url=lab.address, **options)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.complaints, page.asked = [], []
    page.on("console", lambda m: page.complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(f"/?token={lab.token}")
    page.wait_for_function("() => window.lab && window.lab.filmed > 0")
    return page


@pytest.fixture
def page(browser, lab):
    made = opened(browser, lab)
    yield made
    refusals = ("422", "413", "409")  # the browser's own words for an answer that says why
    assert [w for w in made.complaints if not any(code in w for code in refusals)] == []
    strangers = [u for u in made.asked if not u.startswith((lab.address, "data:", "blob:"))]
    assert strangers == []
    made.context.close()


def numbers(page):
    """What the page shows, to the last digit: (side, metric) to mean, low and high."""
    told = page.evaluate(
        """() => [...document.querySelectorAll("#rows tr")].flatMap((row) =>
            [...row.querySelectorAll("td[data-side]")].map((td) =>
              [td.dataset.side, row.dataset.metric, td.dataset.mean, td.dataset.low,
               td.dataset.high]))"""
    )
    return {
        (side, name): tuple(float(text) if text else None for text in rest)
        for side, name, *rest in told
    }


def choice(page):
    return page.evaluate("() => window.lab.controls.choice")


def moved(page, move):
    """Do something and wait until numbers are drawn anew; then they are those of the choice."""
    before = page.evaluate("() => window.lab.drawn")
    move()
    page.wait_for_function("(before) => window.lab.drawn > before", arg=before)


def typed(page, name, value):
    page.fill(f"#{name}", str(value))
    page.press(f"#{name}", "Enter")


def test_every_control_moves_the_numbers(page, rows):
    shown = [numbers(page)]
    assert shown[0] == rows(choice(page))
    moves = {
        **{
            name: lambda n=name, v=value: page.fill(f"#{n}", str(v))
            for name, value in (
                ("w_G", 0.2), ("w_H", 0.7), ("eta", 0.02), ("tau", 0.2), ("lam", 0.15),
                ("psi_min", 0.35), ("delta", 0.99),
            )
        },
        "regions": lambda: typed(page, "regions", "pieces:3"),
        "policy": lambda: page.select_option("#policy", "conservative"),
        "stimulus": lambda: page.select_option("#stimulus", "3"),
        "episodes": lambda: typed(page, "episodes", 5),
        "seed": lambda: typed(page, "seed", 17),
        "coupled": lambda: page.check("#coupled"),
        "scope": lambda: page.select_option("#scope", "local"),
    }  # fmt: skip
    for name, move in moves.items():
        moved(page, move)
        shown.append(numbers(page))
        assert shown[-1] == rows(choice(page)), name
        assert shown[-1] != shown[-2], name
    assert choice(page)["a"]["scope"] == "local:0.5"
    moved(page, lambda: page.select_option("#scope", "topk"))
    moved(page, lambda: typed(page, "scope-much", 3))
    assert choice(page)["a"]["scope"] == "topk:3"
    assert numbers(page) == rows(choice(page))


def test_a_slider_and_its_box_agree(page, rows):
    before = page.evaluate("() => window.lab.drawn")
    page.focus("#w_H-slide")
    page.keyboard.press("PageUp")
    page.wait_for_function("(before) => window.lab.drawn > before", arg=before)
    value = float(page.input_value("#w_H"))
    assert value > 2 and choice(page)["a"]["params"]["w_H"] == value
    page.fill("#w_H", "4")
    assert page.input_value("#w_H-slide") == "500"
    page.wait_for_function("() => window.lab.controls.choice.a.params.w_H === 4")


def test_b_can_have_a_setting_of_its_own(page, rows):
    moved(page, lambda: page.select_option("#b_mode", "own"))
    assert page.is_checked("[name=tab][value=b]")
    moved(page, lambda: page.select_option("#scope", "full"))
    moved(page, lambda: page.fill("#w_H", "0.1"))
    both = choice(page)
    assert (both["a"]["params"]["w_H"], both["b"]["params"]["w_H"]) == (2, 0.1)
    found = numbers(page)
    assert found == rows(both)
    assert found["a", "OddsRatio"] != found["b", "OddsRatio"]
    page.check("[name=tab][value=a]")
    assert page.input_value("#w_H") == "2"
    assert page.inner_text("#point").startswith("A: ")
    moved(page, lambda: page.select_option("#b_mode", "nominal"))
    assert numbers(page)["b", "OddsRatio"][0] == 1


def test_fit_sets_tau_and_regions(page, rows):
    import rapo

    moved(page, lambda: page.click("#fit"))
    side = choice(page)["a"]
    fit = rapo.fit(rapo.generate(60, 1))
    assert side["params"]["tau"] == fit.params.tau and side["regions"] == fit.spec
    assert numbers(page) == rows(choice(page))


def test_another_graph_and_a_film_of_another_episode(page, rows):
    moved(page, lambda: typed(page, "nodes", 70))
    moved(page, lambda: typed(page, "graph_seed", 3))
    assert "70 nodes" in page.inner_text("#title")
    assert numbers(page) == rows(choice(page))
    before = page.evaluate("() => window.lab.filmed")
    typed(page, "shown", 2)
    page.wait_for_function("(before) => window.lab.filmed > before", arg=before)
    reach = page.evaluate(
        """() => { const bits = window.lab.pictures[0].film.arrays.active;
            let sum = 0; for (const b of bits.data) for (let x = b; x; x &= x - 1) sum += 1;
            return sum; }"""
    )
    from rapo.lab.choice import Draws, Place
    from rapo.lab.numbers import answer
    from rapo.lab.sources import find_source

    source = find_source(Place(nodes=70, seed=3))
    result = answer(source, source.side, Draws(4, shown=2), lambda: None).result
    assert reach == result.traces["reach"][2].sum()


def test_what_is_copied_finds_the_same_numbers(page, tmp_path):
    moved(page, lambda: page.fill("#tau", "0.2468"))
    shown = numbers(page)
    page.click("#python")
    page.wait_for_function("() => document.querySelector('#code-said').textContent")
    code = page.input_value("#code-text")
    assert page.evaluate("() => navigator.clipboard.readText()") == code
    page.keyboard.press("Escape")
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=900
    )
    assert said.returncode == 0, said.stderr
    for line in said.stdout.splitlines():
        side, text = line.split(" ", 1)
        found = ast.literal_eval(text.replace("nan", "None"))
        assert {name: tuple(found[name]) for name in ROWS} == {
            name: shown[side.lower(), name] for name in ROWS
        }
    page.click("#command")
    page.wait_for_function("() => document.querySelector('#code-text').value.startsWith('rapo')")
    lines = page.input_value("#code-text").splitlines()
    words = [*lines[0].split()[1:], "--out", str(tmp_path / "out")]
    run = f"import sys; sys.argv = ['rapo', *{words!r}]; from rapo.cli import main; main()"
    said = subprocess.run(
        [sys.executable, "-c", run], capture_output=True, text=True, check=False, timeout=900
    )
    assert said.returncode == 0, said.stderr
    assert f"{shown['a', 'RAG'][0]:.6g}" in said.stdout


def test_wrong_and_missing_tokens(browser, lab):
    context = browser.new_context(base_url=lab.address)
    page = context.new_page()
    for address in ("/", "/?token=guess"):
        reply = page.goto(address)
        assert reply.status == 403
        assert "token" in page.inner_text("body") and lab.token not in page.content()
    context.close()


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("tau", "-1", "tau must be in [0"),
        ("lam", "0", "lam must be in (0"),
        ("psi_min", "2", "psi_min must be in (0, 1]"),
        ("regions", "odd:3", "unknown regions"),
        ("episodes", "5000", "<= 200"),
        ("shown", "99", "<= 3"),
        ("nodes", "3", ">= 20"),
        ("seed", "", "whole number"),
    ],
)
def test_a_value_out_of_range_stays_and_says_why(page, name, value, part):
    before = numbers(page)
    title = page.inner_text("#title")
    typed(page, name, value)
    page.wait_for_selector(f"#{name}-why:not([hidden])")
    assert part in page.inner_text(f"#{name}-why")
    assert page.input_value(f"#{name}") == value
    assert page.get_attribute(f"#{name}", "aria-invalid") == "true"
    assert numbers(page) == before and page.inner_text("#title") == title
    assert page.is_hidden("#problem")


def test_files_that_cannot_be_loaded_change_nothing(page, tmp_path):
    before = numbers(page)
    page.select_option("#place", "file")
    assert page.is_visible("#path") and page.is_hidden("#nodes")
    typed(page, "path", str(tmp_path / "gone.csv"))
    page.wait_for_selector("#path-why:not([hidden])")
    assert "there is no file" in page.inner_text("#path-why")
    bad = tmp_path / "bad.csv"
    bad.write_text("this,is\nno,graph\n")
    page.set_input_files("#upload", bad)
    page.wait_for_function("() => document.querySelector('#path-why').textContent.includes('bad')")
    assert numbers(page) == before
    assert choice(page)["place"]["kind"] == "generated"


def test_a_graph_is_uploaded(page, edges, rows):
    page.select_option("#place", "file")
    moved(page, lambda: page.set_input_files("#upload", edges))
    assert "40 nodes" in page.inner_text("#title")
    assert choice(page)["place"]["path"].endswith("net.csv")
    assert numbers(page) == rows(choice(page))


def test_a_checkpoint_of_this_graph_and_of_another(page, checkpoint, rows):
    page.select_option("#policy", "file")
    moved(page, lambda: typed(page, "policy-path", checkpoint))
    assert numbers(page) == rows(choice(page))
    before = numbers(page)
    moved(page, lambda: typed(page, "graph_seed", 2))
    assert choice(page)["place"]["seed"] == 2
    page.select_option("#policy", "file")  # the path is still there, and tried
    page.wait_for_selector("#policy-why:not([hidden])")
    assert "was trained on graph" in page.inner_text("#policy-why")
    assert before != numbers(page) and page.input_value("#policy-path") == str(checkpoint)


def test_a_platform(page, rows):
    moved(page, lambda: page.select_option("#place", "rapo/Routing-v0"))
    assert page.is_hidden("#regions") and page.is_disabled("#fit")
    assert numbers(page) == rows(choice(page))
    page.wait_for_function("() => window.lab.pictures[0].film !== null")
    page.focus("#net-a")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#probe").startswith("region 0")


def test_the_film_is_played_scrubbed_and_probed_with_the_keyboard(page):
    page.focus("#step")
    page.keyboard.press("End")
    assert page.inner_text("#when") == "replay, step 500 of 500"
    page.keyboard.press("Home")
    assert page.inner_text("#when") == "exposure, step 1 of 500"
    page.focus("#net-a")
    page.keyboard.press("Space")
    page.wait_for_function("() => window.lab.player.time > 5")
    page.focus("#net-b")
    page.keyboard.press("Space")
    assert page.inner_text("#play") == "Play"
    inside = page.evaluate(
        "() => [...window.lab.pictures[0].scene.arrays.sensitive.data].indexOf(1)"
    )
    page.evaluate("() => window.lab.player.go(1199)")
    for _ in range(inside + 1):
        page.keyboard.press("ArrowRight")
    words = page.inner_text("#probe")
    assert words.startswith(f"node {inside} of V_sens, region ") and "psi" in words
    told = page.evaluate(
        """(v) => { const p = window.lab.pictures[1], r = p.film.arrays.region.data[v];
            const H = p.film.arrays.H; return H.data[1199 * H.shape[1] + r]; }""",
        inside,
    )
    assert f"H {told:.3f}" in words and "not applied here" in words
    box = page.locator("#net-a").bounding_box()
    at = page.evaluate("() => window.lab.pictures[0].spot(7)")
    page.mouse.move(box["x"] + at[0], box["y"] + at[1])
    page.wait_for_function(
        "() => document.querySelector('#probe').textContent.startsWith('node 7')"
    )


def test_all_of_it_is_reached_with_tab(page):
    page.evaluate("() => document.querySelector('.skip').focus()")
    seen = set()
    for _ in range(70):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
                const name = e === document.body ? "nothing" : e.id || e.textContent.trim();
                return [name, s.outlineStyle + s.outlineWidth]; }"""
        )
        if name == "nothing":  # past the last one; the next Tab is at the first
            continue
        seen.add(name)
        assert outline.startswith("solid") and outline != "solid0px", (name, outline)
    words = "tour python command png csv gif place nodes tau fit regions scope policy stimulus"
    wanted = {*words.split(), "coupled", "play", "step", "net-a"}
    assert wanted <= seen, wanted - seen


def test_the_tour_has_five_steps(page):
    page.click("#tour")
    seen = []
    for number in range(1, 6):
        assert page.inner_text("#guide-step") == f"{number} of 5"
        seen.append(page.inner_text("#guide-text"))
        assert page.locator(".shown").count() == 1
        page.keyboard.press("Enter")
    assert len(set(seen)) == 5 and page.is_hidden("#guide")
    page.click("#tour")
    page.keyboard.press("Escape")
    assert page.is_hidden("#guide")
    assert page.evaluate("() => document.activeElement.id") == "tour"


def test_exports(page, tmp_path):
    def saved(button):
        with page.expect_download(timeout=PATIENCE) as download:
            page.click(button)
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        return path.read_bytes()

    assert saved("#png").startswith(b"\x89PNG")
    rows = list(csv.DictReader(io.StringIO(saved("#csv").decode())))
    assert [r["side"] for r in rows] == ["A"] * 4 + ["B"] * 4
    mean = sum(float(r["OddsRatio"]) for r in rows[:4]) / 4
    assert mean == pytest.approx(numbers(page)["a", "OddsRatio"][0])
    assert saved("#gif").startswith(b"GIF8")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_laptop_and_a_phone(browser, lab, width, scheme):
    """Never wider than the screen; with RAPO_SHOTS=folder the picture is kept."""
    page = opened(browser, lab, viewport={"width": width, "height": 844}, color_scheme=scheme)
    page.evaluate("() => window.lab.player.go(930)")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    clipped = page.evaluate(
        """() => [...document.querySelectorAll("section table, .transport, .field")].filter((e) =>
            e.scrollWidth > e.parentElement.clientWidth + 1).map((e) => e.className || e.tagName)"""
    )
    assert clipped == []
    ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    dark = sum(json.loads(ground.replace("rgb(", "[").replace(")", "]"))) < 200
    assert dark == (scheme == "dark")
    folder = os.environ.get("RAPO_SHOTS")
    if folder:
        page.screenshot(path=f"{folder}/lab-{width}-{scheme}.png", full_page=True)
    page.context.close()
