"""What is packed for the page is found again where a browser looks for it."""

from __future__ import annotations

import json

import numpy as np

from rapo.show.lab.wire import as_json, pack


def test_arrays_are_found_again_in_place():
    arrays = {
        "a": np.arange(5, dtype=np.uint8),
        "b": np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3),
        "c": np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::2],
    }
    message = pack({"title": "a name of any length"}, arrays)
    length = int.from_bytes(message[:4], "little")
    head = json.loads(message[4 : 4 + length])
    assert head["title"] == "a name of any length" and [row[0] for row in head["arrays"]] == [
        *"abc"
    ]
    for name, kind, shape, at in head["arrays"]:
        start = 4 + length + at
        assert start % 8 == 0  # a typed array of a browser begins where its numbers may
        found = np.frombuffer(message, kind, int(np.prod(shape)), start).reshape(shape)
        np.testing.assert_array_equal(found, arrays[name])


def test_what_is_not_a_finite_number_is_null():
    told = {"x": float("nan"), "y": [np.float32("inf"), np.int64(3)], "z": (1.5, "nan")}
    assert json.loads(as_json(told)) == {"x": None, "y": [None, 3], "z": [1.5, "nan"]}
