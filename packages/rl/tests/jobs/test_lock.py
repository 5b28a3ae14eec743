"""A folder is held by one program at a time, and a refusal says which."""

import pytest

from rapo.jobs.lock import InUseError, locked


def test_a_folder_that_is_held_is_refused_with_the_name_of_its_holder(tmp_path):
    out = tmp_path / "results"
    for holder in ("rapo suite run", "rapo reproduce"):  # the earlier one is forgotten
        refusal = rf"results is in use by {holder} \(process"
        with locked(out, holder), pytest.raises(InUseError, match=refusal):
            locked(out).__enter__()


def test_a_file_is_refused(tmp_path):
    (tmp_path / "results").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        locked(tmp_path / "results").__enter__()
