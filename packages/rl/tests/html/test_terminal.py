"""Tables and curves in a terminal of 80 columns."""

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from rapo.html.page import Section
from rapo.html.terminal import blocks, print_curves, print_frame, print_sections, spark


def terminal(width=80):
    return Console(width=width, file=io.StringIO(), force_terminal=False)


def wide():
    """A table as the study of motivation has it: seven columns, long heads, long names."""
    heads = ["kernel, controller", "peak reach, Exposure → Replay", "ratio", "mean reach"]
    heads += ["steps throttled", "peak p in Exposure", "reward a step in Replay"]
    rows = [["deformed, penalty carried on", "15.7 → 8.3", "0.53", "2.8 → 1.5", "26% → 4%", "15.4"]]
    return pd.DataFrame([[*rows[0], "0.65"]] * 2, columns=heads)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_word_of_a_wide_table_is_cut(width):
    console = terminal(width)
    print_frame(console, wide(), "A caption")
    told = console.file.getvalue()
    assert "…" not in told
    assert all(len(line) <= width for line in told.splitlines())
    words = set(told.split())
    for text in [*wide().columns, *wide().iloc[0]]:
        assert set(text.split()) <= words, text


def test_columns_that_do_not_fit_go_below_with_the_first_repeated():
    assert blocks([10, 10, 10, 10], 40) == [[0, 1, 2], [0, 3]]
    assert blocks([10, 10, 10, 10], 100) == [[0, 1, 2, 3]]
    assert blocks([50, 60, 70], 40) == [[0, 1], [0, 2]]
    assert blocks([10], 40) == [[0]]


def test_a_section_shows_its_first_table_and_counts_the_others(tmp_path):
    frames = [("first", pd.DataFrame({"a": [1]})), ("second", pd.DataFrame({"b": [2]}))]
    console = terminal()
    print_sections(console, [Section("study", "A study", tables=frames)], tmp_path)
    told = console.file.getvalue()
    assert "first" in told
    assert "second" not in told
    assert "1 more tables" in told.replace("\n", " ")


def test_bars_rise_with_the_curve():
    assert spark([0, 0.5, 1], 1) == " ▄█"
    assert spark([0, 0], 0) == "  "
    assert spark([1e-3], 1) == "▁"  # a little is not nothing


def test_curves_fit_the_terminal_and_share_a_scale():
    phase = np.repeat([0, 1, 2], [500, 200, 500])
    console = terminal()
    curves = {"P0": np.ones(1200), "RAPO": np.where(phase == 2, 0.25, 1.0)}
    print_curves(console, curves, phase, "Reach")
    told = console.file.getvalue().splitlines()
    assert all(len(line) <= 80 for line in told)
    high, low = (next(line for line in told if line.startswith(name)) for name in curves)
    assert set(high.split()[-1]) == {"█"}
    assert set(low.split()[-1]) == {"▂"}
    assert "exposure" in told[-1]
    assert "replay" in told[-1]
