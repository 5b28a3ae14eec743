"""A bundle: the kernel's views are the arrays themselves, also of copies."""

import copy
import pickle

import numpy as np
import pytest
from numba import types

from rapo_core.bundle import Bundle, kinds_of, unbundled
from rapo_core.jit import lean_kernel

KINDS = kinds_of(
    types.float32[::1], types.int64[:, ::1], types.boolean[::1], types.uint32[:, :, ::1]
)


@lean_kernel
def visit(table):
    floats, longs, truth, words = unbundled(table, KINDS)
    total = 0
    for i in range(longs.shape[0]):
        for j in range(longs.shape[1]):
            longs[i, j] += 1
            total += longs[i, j] * (10 * i + j)
    for i in range(words.shape[0]):
        for j in range(words.shape[1]):
            for k in range(words.shape[2]):
                words[i, j, k] = 100 * i + 10 * j + k
    truth[truth.size - 1] = True
    floats[0] = np.float32(0.5)
    return total


def arrays():
    return (
        np.zeros(3, np.float32),
        np.arange(6).reshape(2, 3),
        np.zeros(5, np.bool_),
        np.zeros((2, 3, 4), np.uint32),
    )


def test_kernels_read_and_write_the_arrays():
    floats, longs, truth, words = given = arrays()
    assert visit(Bundle(KINDS, given).table) == sum(
        (3 * i + j + 1) * (10 * i + j) for i in range(2) for j in range(3)
    )
    assert longs.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert floats.tolist() == [0.5, 0, 0]
    assert truth.tolist() == [False] * 4 + [True]
    assert all(words[i] == 100 * i[0] + 10 * i[1] + i[2] for i in np.ndindex(2, 3, 4))


class Owner:
    def __init__(self):
        self.arrays = arrays()
        self.bundle = Bundle(KINDS, self.arrays)


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_a_copy_has_arrays_of_its_own(twin_of):
    owner = Owner()
    twin = twin_of(owner)
    visit(twin.bundle.table)
    assert twin.arrays[1].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert owner.arrays[1].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(3), np.zeros((3, 1), np.float32), np.zeros(6, np.float32)[::2]],
)
def test_an_array_of_another_kind_is_refused(wrong):
    with pytest.raises(TypeError, match=r"array 0 must be array\(float32, 1d, C\)"):
        Bundle(KINDS, (wrong, *arrays()[1:]))
