"""`Api`: what the page can ask for; each request is answered with bytes and their media type."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import pandas as pd

from rapo.show.lab.code import as_command, as_python
from rapo.show.lab.film import arrays_of, gif_of, record_shown
from rapo.show.lab.latest_job import LatestJob, Report
from rapo.show.lab.metrics import CURVES, measure
from rapo.show.lab.request import (
    CONSTANTS,
    KINDS,
    MOST_EPISODES,
    MOST_NODES,
    ControlError,
    Episodes,
    SourceId,
    Variant,
)
from rapo.show.lab.scenes import scene_of
from rapo.show.lab.sources import MOST_BYTES, Source, find_source
from rapo.show.lab.wire import as_json, pack
from rapo_core.version import VERSION

JSON, BYTES = "application/json", "application/octet-stream"
Reply = tuple[bytes, str]


def as_job(method: Callable[[Api, Any, Report], Reply]) -> Callable[[Api, Any], Reply]:
    """Run a method as a job: a newer request of its name ends it."""

    @wraps(method)
    def run(self: Api, body: Any) -> Reply:
        return self.jobs.run(method.__name__, lambda report: method(self, body, report))

    return run


class Api:
    """The requests of one page. A method is a route of its name and takes the JSON of a request.

    Args:
        source: what the page opens first.
        first: the variant `a` and the `episodes` that the page begins with.
    """

    ROUTES = (
        "start", "source", "metrics", "film", "fit", "code", "csv", "gif", "progress", "stop",
    )  # fmt: skip
    """Names of the methods that the page can call."""

    def __init__(
        self, source: SourceId | None = None, first: Mapping[str, Any] | None = None
    ) -> None:
        self._source, self._first = source or SourceId(), dict(first or {})
        self.jobs = LatestJob()

    def close(self) -> None:
        """End the job that runs."""
        self.jobs.close()

    def start(self, body: Any) -> Reply:
        """What the page needs to know before anything else."""
        about = {
            "version": VERSION, "source": vars(self._source), "first": self._first, "kinds": KINDS,
            "constants": CONSTANTS, "phases": ("exposure", "washout", "replay"), "curves": CURVES,
            "limits": {"nodes": MOST_NODES, "episodes": MOST_EPISODES, "bytes": MOST_BYTES},
        }  # fmt: skip
        return as_json(about), JSON

    @as_job
    def source(self, body: Any, report: Report) -> Reply:
        """A source: what it is, its first variant, and its picture without what moves."""
        source = find_source(SourceId.parse(_entry(body, "source")))
        head, arrays = scene_of(source)
        about = {
            **head, "title": source.title, "warnings": source.warnings, "stimuli": source.stimuli,
            "horizons": source.horizons, "policies": source.policies,
            "variant": source.variant.to_dict(), "counts": source.counts,
            "platform": source.id.is_platform,
        }  # fmt: skip
        return pack(about, arrays), BYTES

    @as_job
    def metrics(self, body: Any, report: Report) -> Reply:
        """Metrics and curves of both variants."""
        source, variants, episodes = _request(body)
        heads, arrays = [], {}
        for name, variant in zip("ab", variants, strict=True):
            metrics = measure(source, variant, episodes, report(name.upper()))
            result = metrics.result
            heads.append({
                "rows": metrics.rows, "point": metrics.point, "regions": metrics.regions,
                "heavy": result.heavy_tailed,
                "stimulus": int(result.frame["stimulus"][episodes.shown]),
            })  # fmt: skip
            for key, curve in metrics.curves(episodes.shown).items():
                arrays[f"{name}.{key}"] = curve
        return pack({"variants": heads}, arrays), BYTES

    @as_job
    def film(self, body: Any, report: Report) -> Reply:
        """The shown episode of both variants."""
        source, variants, episodes = _request(body)
        films = {
            name: record_shown(source, variant, episodes, report(name.upper()))
            for name, variant in zip("ab", variants, strict=True)
        }
        arrays = {
            f"{name}.{key}": array
            for name, recording in films.items()
            for key, array in arrays_of(recording).items()
        }
        every = [recording.fields.every for recording in films.values()]
        return pack({"stimulus": films["a"].stimulus, "every": every}, arrays), BYTES

    @as_job
    def fit(self, body: Any, report: Report) -> Reply:
        """Regions and tau by `rapo.fit`, with the other constants of variant A."""
        source, (variant, _), _ = _request(body)
        fit = source.fit(variant)
        return as_json({"regions": fit.spec, "tau": fit.params.tau}), JSON

    def code(self, body: Any) -> Reply:
        """The metrics as Python and as a command."""
        source, variants, episodes = _request(body)
        python = as_python(source, variants, episodes)
        command = as_command(source, variants, episodes)
        return as_json({"python": python, "command": command}), JSON

    @as_job
    def csv(self, body: Any, report: Report) -> Reply:
        """A row for every episode of both variants."""
        source, variants, episodes = _request(body)
        frames = []
        for name, variant in zip("AB", variants, strict=True):
            frame = measure(source, variant, episodes, report(name)).result.frame.copy()
            frame.insert(0, "variant", name)
            frames.append(frame)
        text = io.StringIO()
        pd.concat(frames).to_csv(text, index=False)
        return text.getvalue().encode(), "text/csv"

    @as_job
    def gif(self, body: Any, report: Report) -> Reply:
        """The shown episode of both variants as a GIF."""
        return gif_of(*_request(body), report("film")), "image/gif"

    def progress(self, body: Any) -> Reply:
        """The part of the job that runs, and the share of it that is done."""
        part, share = self.jobs.progress or ("", None)
        return as_json({"part": part, "share": share}), JSON

    def stop(self, body: Any) -> Reply:
        """End the job that runs; the page keeps what it shows."""
        self.jobs.stop()
        return as_json({}), JSON


def _request(body: Any) -> tuple[Source, tuple[Variant, Variant], Episodes]:
    """Source, variants and episodes; variant B is A under `P0` unless the page sends another."""
    source = find_source(SourceId.parse(_entry(body, "source")))
    a = Variant.parse(_entry(body, "a"), source.variant.params)
    other = body.get("b")
    b = a.nominal if other is None else Variant.parse(other, source.variant.params)
    return source, (a, b), Episodes.parse(_entry(body, "episodes"), source.stimuli)


def _entry(body: Any, name: str) -> Any:
    if not isinstance(body, Mapping) or name not in body:
        raise ControlError(name, f"a request needs {name!r}, got {body!r:.80}")
    return body[name]
