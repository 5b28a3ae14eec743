"""The page in a real browser: keyboard, film, tour, exports, sizes, light and dark."""

from __future__ import annotations

import base64
import io
import json
import math
import os

import numpy as np
import pandas as pd
import pytest
from lab_page import moved, opened, saved
from PIL import Image

from rapo.show.lab.film import gif_of
from rapo.show.lab.metrics import measure
from rapo.show.lab.request import Episodes


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
    G, H, psi = (float(words.partition(f"{name} ")[2].split(",")[0].split()[0])
                 for name in ("G", "H", "psi"))  # fmt: skip
    p = page.evaluate("() => window.lab.controls.choice.a.params")
    wanted = min(1, max(p["psi_min"], math.exp(-p["w_G"] * G - p["w_H"] * H)))
    assert psi == pytest.approx(wanted, abs=0.004)
    tint = page.evaluate(
        """(v) => { const p = window.lab.pictures[1];
            return p.closed(p.film.arrays.region.data[v], p.row(1199)); }""",
        inside,
    )
    shut = 1 - max(p["psi_min"], math.exp(-p["w_H"] * told))
    assert tint == pytest.approx(min(1, shut / (1 - p["psi_min"])), abs=1e-5)
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
    words = "tour python command png csv gif source nodes tau fit regions scope policy stimulus"
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


def pixels(data):
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB"))


def test_the_png_is_what_is_shown(page, tmp_path):
    page.evaluate("() => window.lab.player.go(930)")
    picture = pixels(saved(page, "#png", tmp_path))
    for side, left in (("a", True), ("b", False)):
        address = page.evaluate(f"() => document.querySelector('#net-{side}').toDataURL()")
        shown = base64.b64decode(address.partition(",")[2])
        with Image.open(io.BytesIO(shown)) as image:
            seen = np.asarray(image)
        high, wide = seen.shape[:2]
        x = 16 if left else 32 + wide
        part = picture[52 : 52 + high, x : x + wide]
        solid = seen[..., 3] == 255  # elsewhere the ground of the page shines through
        assert solid.sum() > 500
        np.testing.assert_array_equal(part[solid], seen[solid][:, :3])
    below = picture[52 + high + 16 :]
    blue = (np.abs(below.astype(int) - (0x0B, 0x62, 0xB0)) < 40).all(axis=2)
    halves = blue[:, : blue.shape[1] // 2], blue[:, blue.shape[1] // 2 :]
    assert all(half.sum() > 300 for half in halves)  # the curves of A


def test_a_png_that_is_asked_for_at_once_waits_for_its_film(page, tmp_path):
    page.evaluate("() => window.lab.player.go(930)")
    moved(page, lambda: page.select_option("#source", "rapo/Twin-v0"))
    assert page.evaluate("() => window.lab.pictures[0].film === null")
    picture = pixels(saved(page, "#png", tmp_path))
    orange = (np.abs(picture.astype(int) - (0xE6, 0x9F, 0x00)) < 12).all(axis=2)
    assert orange.sum() > 50  # the units


def test_the_csv_has_every_episode_of_both_sides(page, tmp_path, source):
    wanted = [measure(source, side, Episodes(4)).result.frame
              for side in (source.variant, source.variant.nominal)]  # fmt: skip
    found = pd.read_csv(io.BytesIO(saved(page, "#csv", tmp_path)), dtype=str)
    assert found.pop("variant").tolist() == ["A"] * 4 + ["B"] * 4
    exact = found.map(float)  # as Python reads them, to the last digit
    whole = pd.concat(wanted, ignore_index=True)
    pd.testing.assert_frame_equal(exact, whole, check_exact=True, check_dtype=False)


def test_the_gif_is_the_film_of_both_sides(page, tmp_path, source):
    data = saved(page, "#gif", tmp_path)
    with Image.open(io.BytesIO(data)) as film:
        assert film.n_frames == 120 and film.size[0] == 840
    sides = (source.variant, source.variant.nominal)
    assert data == gif_of(source, sides, Episodes(4), lambda done, total: None)


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
