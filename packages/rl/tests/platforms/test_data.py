"""Where real data are looked for, and what is said where they are missing."""

import pytest

from rapo.platforms import data
from rapo.platforms.registration import PLATFORMS


def test_an_installed_package_looks_for_no_data_inside_its_environment(monkeypatch):
    installed = "/home/someone/venv/lib/python3.11/site-packages/rapo/platforms/data.py"
    monkeypatch.setattr(data, "__file__", installed)
    monkeypatch.delenv("RAPO_DATA", raising=False)
    assert data.data_folder() is None
    assert data.missing_data("a.csv") == "RAPO_DATA is not set" and data.missing_data() == ""
    with pytest.warns(UserWarning, match="RAPO_DATA") as said:
        assert data.data_source("auto", "rapo/Feed-v0", "a.csv") == "stand-in"
    assert "venv" not in str(said[0].message)
    with pytest.raises(ValueError, match="rapo docs suite"):
        data.data_source("real", "rapo/Feed-v0", "a.csv")
    with pytest.raises(ValueError, match="rapo docs suite"):
        data.data_path("a.csv")


def test_a_checkout_looks_beside_itself(monkeypatch):
    monkeypatch.delenv("RAPO_DATA", raising=False)
    folder = data.data_folder()
    assert folder is not None and folder.parts[-2:] == ("shared", "data")


def test_a_missing_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("RAPO_DATA", str(tmp_path))
    (tmp_path / "a.csv").write_text("")
    assert data.missing_data("a.csv") == ""
    assert "b.csv" in data.missing_data("a.csv", "b.csv")


@pytest.mark.parametrize("entry", PLATFORMS.values(), ids=lambda entry: entry.name)
def test_a_platform_reads_the_files_of_its_entry(entry, monkeypatch, tmp_path):
    monkeypatch.setenv("RAPO_DATA", str(tmp_path))
    if entry.files:
        with pytest.raises(ValueError, match=entry.files[0]):
            entry.make(0, "real")
    else:
        entry.make(0, "real")
