"""Stamps of kernels: the files and constants that compiled code is made from."""

import numpy as np
import pytest

from rapo.cascade.lanes_kernel import RUN_LANES
from rapo.cascade.phases import enter_phases
from rapo.cascade.push_kernel import RUN_PUSH
from rapo_core.fields import step_fields
from rapo_core.jit import inlined, kernel
from rapo_core.kernel_stamp import file_stamp, stamp_of
from rapo_core.lanes import where

CASCADE = {"rapo.cascade.draws", "rapo.cascade.stats", "rapo.cascade.phases"}
CORE = {"rapo_core.bits", "rapo_core.bundle", "rapo_core.fields", "rapo_core.lanes"}


def modules_of(function):
    stamp = function._cache._cache_file._source_stamp[1]
    return {module for module, *numbers in stamp if len(numbers) == 2}


@pytest.mark.parametrize(
    ("function", "modules"),
    [
        (step_fields, {"rapo_core.fields", "rapo_core.lanes"}),
        (enter_phases, {"rapo.cascade.phases", "rapo.cascade.draws"}),
        (RUN_PUSH["contact"], {"rapo.cascade.push_kernel", *CASCADE, *CORE}),
        (RUN_LANES["contact"], {"rapo.cascade.lanes_kernel", *CASCADE, *CORE}),
    ],
)
def test_a_kernel_is_stamped_with_the_files_that_it_is_made_from_and_no_other(function, modules):
    assert modules_of(function) == {"rapo_core.jit", *modules}


LIMIT = 3


@kernel
def first(x):
    return where(x > LIMIT, defined_later(x), 0.0)


@inlined
def defined_later(x):
    return x + TABLE[0]


TABLE = np.array([1.5])


def test_constants_and_functions_that_are_defined_after_the_kernel_count():
    constants = {stamp[1] for stamp in stamp_of(first.py_func) if len(stamp) == 2}
    assert {"3", f"float64 (1,) {TABLE.tobytes().hex()}"} <= constants


def outer(factor):
    def inner(x):
        return factor * x

    return inner


def test_functions_made_with_different_constants_have_different_stamps():
    assert stamp_of(outer(2.0)) != stamp_of(outer(3.0))
    assert stamp_of(outer(2.0)) == stamp_of(outer(2.0))


def test_a_module_without_a_file_is_stamped_by_name():
    assert file_stamp("sys") == ("sys",)
    assert len(file_stamp("rapo_core.fields")) == 3
