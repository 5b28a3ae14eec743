"""The warning that harm memory is idle: with these regions and constants next to nothing scars."""

from __future__ import annotations

import warnings
from functools import lru_cache
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.cascade.setting import Setting
from rapo.graphs.exposure import nominal_harm
from rapo.graphs.fit import fit
from rapo_core.operating_point import OperatingPoint, operating_point
from rapo_core.params import FieldParams


class IdleWarning(UserWarning):
    """Less than a tenth of the harm can scar, so the deformation does next to nothing."""


def point_of(
    graph: Graph, regions: npt.NDArray[np.int32], params: FieldParams, setting: Setting
) -> OperatingPoint:
    """`exposure_point`; the record, in which no constant plays a part, is remembered."""
    return operating_point(_record(graph, regions.tobytes(), setting), params)


@lru_cache(maxsize=64)
def _record(graph: Graph, regions: bytes, setting: Setting) -> npt.NDArray[np.float64]:
    return nominal_harm(graph, np.frombuffer(regions, np.int32), setting)


_TOLD: set[tuple[str, str, FieldParams, Setting]] = set()


def warn_if_idle(
    graph: Graph, regions: npt.NDArray[np.int32], params: FieldParams, setting: Setting
) -> OperatingPoint:
    """The operating point; where the memory is idle, a warning, once per choice and process."""
    point = point_of(graph, regions, params, setting)
    key = (graph.hash, sha256(regions.tobytes()).hexdigest(), params, setting)
    if point.idle and key not in _TOLD:
        _TOLD.add(key)
        warnings.warn(f"RAPO is idle here: {point}; {_remedy(graph, setting)}", IdleWarning, 3)
    return point


def _remedy(graph: Graph, setting: Setting) -> str:
    try:
        found = fit(graph, setting=setting)
    except ValueError as error:
        return f"rapo.fit finds nothing either: {error}"
    return (
        f"rapo.fit would set tau {found.params.tau:.2g} with {found.count:,} regions (fit=True, or "
        "leave regions and params out)"
    )
