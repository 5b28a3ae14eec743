"""The manifest of a folder: what it holds is refused, kept or added to."""

import json

import pytest

from rapo.jobs.folder import claim_folder, note, read_manifest


def test_a_folder_of_another_config_is_refused_and_stays_as_it_is(tmp_path):
    claim_folder(tmp_path, {"steps": 5, "seeds": (0, 1)}, command="rapo x")
    before = (tmp_path / "manifest.json").read_text()
    claim_folder(tmp_path, {"steps": 5, "seeds": [0, 1]}, command="rapo y")
    with pytest.raises(ValueError, match=r"differ in steps \(there steps = 5, now 6\)"):
        claim_folder(tmp_path, {"steps": 6, "seeds": [0, 1]})
    assert (tmp_path / "manifest.json").read_text() == before
    assert read_manifest(tmp_path)["command"] == "rapo x"


def test_a_refusal_names_the_values_inside_tables(tmp_path):
    values = {f"value{i}": i for i in range(9)}
    claim_folder(tmp_path, {"setting": {**values, "delay": 50}, "steps": 5})
    for changed, names in (
        ({**values, "delay": 40}, r"in setting\.delay \(there setting\.delay = 50, now 40\)"),
        (
            {"delay": 50, "spread": 1},
            r"in setting\.spread, .*value3 and 5 more \(there .* None",
        ),
    ):
        with pytest.raises(ValueError, match=names):
            claim_folder(tmp_path, {"setting": changed, "steps": 5})


def test_a_manifest_is_added_to(tmp_path):
    claim_folder(tmp_path, {"steps": 5})
    note(tmp_path, studies=["one"])
    note(tmp_path, studies=["one", "two"])
    content = read_manifest(tmp_path)
    assert content["studies"] == ["one", "two"] and content["config"] == {"steps": 5}


@pytest.mark.parametrize("version", ["0.1.0", "0.2.3"])
def test_results_of_an_earlier_version_are_refused_with_the_command(tmp_path, version):
    old = {"versions": {"rapo": version}, "command": "rapo reproduce networks"}  # without a config
    (tmp_path / "manifest.json").write_text(json.dumps(old))
    wanted = rf"version {version}, .*: rapo reproduce networks --out {tmp_path}-anew"
    for call in (lambda: read_manifest(tmp_path), lambda: claim_folder(tmp_path, {})):
        with pytest.raises(ValueError, match=wanted):
            call()
    assert json.loads((tmp_path / "manifest.json").read_text()) == old
