"""Files are written whole, and none is overwritten unasked."""

from contextlib import suppress

import pytest

from rapo_core.files import refuse_to_overwrite, written_whole


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "table.csv"
    with written_whole(path) as part:
        part.write_text("new")
        assert not path.exists() and part.suffix == ".csv"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_earlier_file_and_nothing_else(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("earlier")
    with suppress(RuntimeError), written_whole(path) as part:
        part.write_text("ne")
        raise RuntimeError("half")
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_exists_is_refused_unless_forced(tmp_path):
    path = tmp_path / "page.html"
    refuse_to_overwrite(path, tmp_path / "new" / "page.html")
    path.write_text("earlier")
    with pytest.raises(FileExistsError, match="choose another --plot or pass --force"):
        refuse_to_overwrite(tmp_path / "other", path, option="--plot")
    refuse_to_overwrite(path, force=True)


@pytest.mark.parametrize("force", [False, True])
def test_files_and_folders_do_not_take_each_others_place(tmp_path, force):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="is a file; choose another --out"):
        refuse_to_overwrite(tmp_path / "file" / "page.html", force=force)
    with pytest.raises(FileExistsError, match="is a folder; choose another --out"):
        refuse_to_overwrite(tmp_path, force=force)
