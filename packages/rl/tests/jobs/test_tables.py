"""Data frames come back from their files, and damage is named."""

import numpy as np
import pandas as pd
import pytest

from rapo.jobs.tables import read_table, write_table


def test_a_frame_comes_back_with_single_precision(tmp_path):
    frame = pd.DataFrame(
        {"name": ["a", "b"], "count": [1, 2], "value": [1 / 3, np.nan], "whole": [True, False]}
    )
    write_table(tmp_path / "new" / "frame.parquet", frame)
    back = read_table(tmp_path / "new" / "frame.parquet")
    assert back.dtypes.astype(str).tolist()[1:] == ["int64", "float64", "bool"]
    assert back["value"][0] == pytest.approx(1 / 3, rel=1e-7) and np.isnan(back["value"][1])
    assert back.drop(columns="value").equals(frame.drop(columns="value"))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["frame.parquet"]


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_a_damaged_file_is_named_with_the_remedy(tmp_path, damage):
    path = tmp_path / "frame.parquet"
    write_table(path, pd.DataFrame({"value": np.arange(5000.0)}))
    data = bytearray(path.read_bytes())
    if damage == "changed":
        data[100] ^= 255
    path.write_bytes({"cut": data[: len(data) // 2], "changed": data, "empty": b""}[damage])
    with pytest.raises(ValueError, match=r"frame.parquet is damaged .*; remove .* and run"):
        read_table(path)
