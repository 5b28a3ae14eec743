"""Sets as bits: what the kernels see is what NumPy put in."""

import numpy as np
import pytest

from rapo_core.bits import BIT, NONE, lowest_bit, mark, marked, packed, unmark, unpacked
from rapo_core.jit import kernel


@kernel
def members_of(words, out):
    count = 0
    for w in range(words.size):
        rest = words[w]
        while rest != NONE:
            out[count] = (w << 6) + lowest_bit(rest)
            rest &= rest - BIT
            count += 1
    return count


@kernel
def change(words, added, removed, out):
    mark(words, added)
    unmark(words, removed)
    for i in range(out.size):
        out[i] = marked(words, i)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 200])
def test_sets_come_back_in_ascending_order(size):
    truth = np.random.default_rng(size).random((3, size)) < 0.4
    truth[:, -1] = True
    words = packed(truth)
    assert words.shape == (3, -(-size // 64))
    assert np.array_equal(unpacked(words, size), truth)
    for row, each in zip(truth, words, strict=True):
        out = np.zeros(size, np.int64)
        assert out[: members_of(each, out)].tolist() == np.flatnonzero(row).tolist()


def test_members_are_added_and_taken_out():
    truth = np.arange(130) % 3 == 0
    words = packed(truth)
    seen = np.zeros(130, np.int64)
    change(words, 127, 63, seen)
    truth[127], truth[63] = True, False
    assert np.array_equal(seen, truth)
