"""`rapo rsd` asks for the twin and the other stimulus, and keeps what they gave."""

import pytest
from typer.testing import CliRunner

from rapo.cli.main import app
from rapo.rsd import RSDResult

WORDS = ["rsd", "aggressive", "--nodes", "60", "--episodes", "3", "--horizons", "80,60,60"]


@pytest.mark.parametrize(
    ("flag", "column", "other"),
    [("--against-p0", "SM_vs_P0", "Selectivity"), ("--selectivity", "Selectivity", "SM_vs_P0")],
)
def test_flags_reach_the_diagnostic(flag, column, other, tmp_path):
    shown = CliRunner().invoke(app, [*WORDS, flag, "--out", str(tmp_path / "run")])
    assert shown.exit_code == 0, shown.output
    assert column in shown.output and other not in shown.output
    frame = RSDResult.load(tmp_path / "run").frame
    assert frame[column].notna().all() and frame[other].isna().all()
