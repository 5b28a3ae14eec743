"""The page in a real browser: what is wrong is told where it was typed, and nothing changes."""

from __future__ import annotations

import pytest
from lab_page import choice, moved, numbers, typed


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
        ("tau", "-1", "tau must be a number in [0"),
        ("lam", "0", "lam must be a number in (0"),
        ("psi_min", "2", "psi_min must be a number in (0, 1]"),
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
    page.select_option("#source", "file")
    assert page.is_visible("#path") and page.is_hidden("#nodes")
    typed(page, "path", str(tmp_path / "gone.csv"))
    page.wait_for_selector("#path-why:not([hidden])")
    assert "there is no file" in page.inner_text("#path-why")
    bad = tmp_path / "bad.csv"
    bad.write_text("this,is\nno,graph\n")
    page.set_input_files("#upload", bad)
    page.wait_for_function("() => document.querySelector('#path-why').textContent.includes('bad')")
    assert numbers(page) == before
    assert choice(page)["source"]["kind"] == "generated"


def test_a_checkpoint_of_this_graph_and_of_another(page, checkpoint, rows):
    page.select_option("#policy", "file")
    moved(page, lambda: typed(page, "policy-path", checkpoint))
    assert numbers(page) == rows(choice(page))
    before = numbers(page)
    moved(page, lambda: typed(page, "graph_seed", 2))
    assert choice(page)["source"]["seed"] == 2
    page.select_option("#policy", "file")  # the path is still there, and tried
    page.wait_for_selector("#policy-why:not([hidden])")
    assert "was trained on graph" in page.inner_text("#policy-why")
    assert before != numbers(page) and page.input_value("#policy-path") == str(checkpoint)
