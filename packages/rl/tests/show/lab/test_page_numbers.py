"""The page in a real browser: what is shown is what was chosen, and what is copied finds it."""

from __future__ import annotations

import ast
import subprocess
import sys

import numpy as np
from lab_page import choice, moved, numbers, typed

from rapo.show.lab.metrics import ROWS, measure
from rapo.show.lab.request import Episodes, SourceId
from rapo.show.lab.sources import find_source


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


def test_what_is_written_and_drawn_is_what_was_found(page, source):
    """Digits of the table, curves and counts, of A and of B."""
    for row in page.locator("#rows tr").all():
        for cell in row.locator("td[data-side]").all():
            mean, low, high = (cell.get_attribute(f"data-{n}") for n in ("mean", "low", "high"))
            words = cell.inner_text().split()
            assert abs(float(words[0]) - float(mean)) <= 0.06 * 10 ** -(len(words[0]) > 5)
            assert words[2] == "to" and float(words[1]) <= float(words[0]) <= float(words[3])
            for text, value in zip(words[1::2], (low, high), strict=True):
                digits = len(text.partition(".")[2])
                assert digits >= 1 and abs(float(text) - float(value)) <= 0.51 * 10**-digits
    page.evaluate("() => window.lab.player.go(930)")
    for name, side in (("a", source.variant), ("b", source.variant.nominal)):
        found = measure(source, side, Episodes(4))
        reach, inside = (found.result.traces[n][0, 930] for n in ("reach", "sensitive_mass"))
        assert page.inner_text(f"#count-{name}") == f"reach {reach:.0f}, sensitive {inside:.0f}"
        for curve, series in found.curves(0).items():
            trace, kind = curve.split(".")
            drawn = page.evaluate(
                """([trace, side, kind]) => { const c = window.lab.curves.find((c) =>
                    c.name === trace); return [...c.data[side][kind]].map((v) =>
                    Number.isNaN(v) ? null : v); }""",
                [trace, name, kind],
            )
            smooth = [
                np.nanmean(part[max(0, t - 9) : t + 1])
                if np.isfinite(part[max(0, t - 9) : t + 1]).any()
                else np.nan
                for part in np.split(series.astype(float), [500, 700])
                for t in range(len(part))
            ]
            np.testing.assert_allclose(np.array(drawn, float), smooth, rtol=1e-4, atol=1e-6)


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
    source = find_source(SourceId(nodes=70, seed=3))
    result = measure(source, source.variant, Episodes(4, shown=2)).result
    assert reach == result.traces["reach"][2].sum()


def test_a_graph_is_uploaded(page, edges, rows):
    page.select_option("#source", "file")
    moved(page, lambda: page.set_input_files("#upload", edges))
    assert "40 nodes" in page.inner_text("#title")
    assert choice(page)["source"]["path"].endswith("net.csv")
    assert numbers(page) == rows(choice(page))


def test_a_platform(page, rows):
    moved(page, lambda: page.select_option("#source", "rapo/Routing-v0"))
    assert page.is_hidden("#regions") and page.is_disabled("#fit")
    assert numbers(page) == rows(choice(page))
    page.wait_for_function("() => window.lab.pictures[0].film !== null")
    page.focus("#net-a")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#probe").startswith("region 0")


def test_long_work_is_stopped_and_what_is_shown_stays(page, rows):
    moved(page, lambda: page.select_option("#source", "rapo/Routing-v0"))
    page.wait_for_function("() => window.lab.pictures[0].film !== null")
    before = choice(page)
    typed(page, "episodes", 200)
    page.wait_for_selector("#stop:visible")
    assert 0 <= page.evaluate("() => document.querySelector('#share').value") <= 1
    page.click("#stop")
    page.wait_for_selector("#waiting", state="hidden")
    assert "stopped" in page.inner_text("#busy")
    assert page.inner_text("#of") == "4" and numbers(page) == rows(before)
    moved(page, lambda: typed(page, "episodes", 3))
    assert numbers(page) == rows(choice(page)) and page.inner_text("#of") == "3"


def test_metrics_of_one_source_are_not_shown_beside_another(page):
    moved(page, lambda: typed(page, "episodes", 200))
    page.select_option("#source", "rapo/Routing-v0")
    page.wait_for_selector("#stop:visible")
    page.wait_for_function("() => document.querySelector('#title').textContent.includes('Routing')")
    page.click("#stop")
    page.wait_for_selector("#waiting", state="hidden")
    assert page.locator("#rows tr").count() == 0 and page.inner_text("#point") == ""
    assert page.evaluate("() => window.lab.curves.every((c) => c.data === null)")
    page.click("#command")
    page.wait_for_selector("#problem:not([hidden])")
    assert "no metrics" in page.inner_text("#problem")


def test_what_is_copied_finds_the_same_numbers(page, tmp_path):
    moved(page, lambda: page.fill("#tau", "0.2468"))
    shown = numbers(page)
    page.click("#python")
    page.wait_for_function("() => document.querySelector('#code-said').textContent")
    code = page.input_value("#code-text")
    assert page.evaluate("() => navigator.clipboard.readText()") == code
    page.keyboard.press("Escape")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
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
    said = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert f"{shown['a', 'RAG'][0]:.6g}" in said.stdout
