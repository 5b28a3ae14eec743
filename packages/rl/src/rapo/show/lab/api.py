"""`Desk`: what the page can ask for, each question with its answer as bytes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from rapo.platforms.registration import PLATFORMS
from rapo.show.lab.code import as_command, as_python
from rapo.show.lab.film import arrays_of, gif_of, recorded
from rapo.show.lab.latest_job import Work
from rapo.show.lab.numbers import CURVES, Answer, Check, answer
from rapo.show.lab.request import (
    CONSTANTS,
    FILE,
    GENERATED,
    MOST_EPISODES,
    MOST_NODES,
    ControlError,
    Draws,
    Place,
    Side,
)
from rapo.show.lab.scenes import scene_of
from rapo.show.lab.sources import MOST_BYTES, Source, find_source
from rapo.show.lab.wire import as_json, pack
from rapo_core.version import VERSION

JSON, BYTES = "application/json", "application/octet-stream"
Reply = tuple[bytes, str]


class Desk:
    """Answers of one page; only one is worked on at a time.

    Args:
        place: where the page begins.
        words: the page's words for the side and the draws that it begins with.
    """

    def __init__(self, place: Place | None = None, words: Mapping[str, Any] | None = None) -> None:
        self._place = place or Place()
        self._words = dict(words or {})
        self._work = Work()

    def close(self) -> None:
        """End what runs."""
        self._work.close()

    def start(self, given: Any) -> Reply:
        """What the page needs to know before anything else."""
        about = {
            "version": VERSION,
            "place": _place_words(self._place),
            "words": self._words,
            "kinds": [GENERATED, FILE, *PLATFORMS],
            "constants": CONSTANTS,
            "phases": ("exposure", "washout", "replay"),
            "curves": CURVES,
            "limits": {"nodes": MOST_NODES, "episodes": MOST_EPISODES, "bytes": MOST_BYTES},
        }
        return as_json(about), JSON

    def place(self, given: Any) -> Reply:
        """A place: what it is, how it begins, and what is drawn of it."""
        place = Place.of(_entry(given, "place"))

        def job(check: Check) -> Reply:
            source = find_source(place)
            head, arrays = scene_of(source)
            about = {
                **head, "title": source.title, "remarks": source.remarks,
                "stimuli": source.stimuli, "horizons": source.horizons,
                "policies": source.policies, "side": source.side.to_dict(),
                "counts": source.counts, "platform": place.is_platform,
            }  # fmt: skip
            return pack(about, arrays), BYTES

        return self._work.run("place", job)

    def numbers(self, given: Any) -> Reply:
        """Numbers and curves of both sides."""

        def job(check: Check) -> Reply:
            source, sides, draws = _choice(given)
            head: dict[str, Any] = {"sides": []}
            arrays: dict[str, Any] = {}
            for name, side in zip("ab", sides, strict=True):
                found = answer(source, side, draws, check, partial(self._work.tell, name.upper()))
                head["sides"].append(_side(found, draws))
                curves = found.curves(draws.shown)
                arrays |= {f"{name}.{key}": value for key, value in curves.items()}
            return pack(head, arrays), BYTES

        return self._work.run("numbers", job)

    def film(self, given: Any) -> Reply:
        """The shown episode of both sides."""

        def job(check: Check) -> Reply:
            source, sides, draws = _choice(given)
            films = [recorded(source, side, draws, check, coupled=draws.coupled) for side in sides]
            arrays = {
                f"{name}.{key}": value
                for name, recording in zip("ab", films, strict=True)
                for key, value in arrays_of(recording).items()
            }
            every = [recording.fields.every for recording in films]
            head = {"stimulus": films[0].stimulus, "every": every}
            return pack(head, arrays), BYTES

        return self._work.run("film", job)

    def fit(self, given: Any) -> Reply:
        """Regions and tau by `rapo.fit`, with the other constants as they are."""

        def job(check: Check) -> Reply:
            source, (side, _), _ = _choice(given)
            found = source.fitted(side)
            return as_json(
                {"regions": found.spec, "tau": found.params.tau, "words": f"{found}."}
            ), JSON

        return self._work.run("fit", job)

    def code(self, given: Any) -> Reply:
        """The numbers as Python and as a command."""
        source, sides, draws = _choice(given)
        return as_json(
            {
                "python": as_python(source, sides, draws),
                "command": as_command(source.place, sides, draws, source.side),
            }
        ), JSON

    def csv(self, given: Any) -> Reply:
        """A row per side and episode."""

        def job(check: Check) -> Reply:
            source, sides, draws = _choice(given)
            frames = []
            for name, side in zip("AB", sides, strict=True):
                frame = answer(source, side, draws, check).result.frame.copy()
                frame.insert(0, "side", name)
                frames.append(frame)
            text = io.StringIO()
            pd.concat(frames).to_csv(text, index=False)
            return text.getvalue().encode(), "text/csv"

        return self._work.run("csv", job)

    def gif(self, given: Any) -> Reply:
        """The shown episode of both sides as a GIF."""

        def job(check: Check) -> Reply:
            tell = partial(self._work.tell, "frames")
            return gif_of(*_choice(given), check, tell), "image/gif"

        return self._work.run("gif", job)

    def progress(self, given: Any) -> Reply:
        """What the present job does, and which share of it is done."""
        words, share = self._work.progress or ("", None)
        return as_json({"words": words, "share": share}), JSON

    def stop(self, given: Any) -> Reply:
        """End the present job; what the page shows stays."""
        self._work.stop()
        return as_json({}), JSON


def _side(found: Answer, draws: Draws) -> dict[str, Any]:
    result = found.result
    return {
        "rows": found.rows,
        "point": found.point,
        "regions": found.regions,
        "heavy": result.heavy_tailed,
        "stimulus": int(result.frame["stimulus"][draws.shown]),
    }


def _choice(given: Any) -> tuple[Source, tuple[Side, Side], Draws]:
    """Place, sides and draws from the page's words; B is A without its gate unless it is given."""
    source = find_source(Place.of(_entry(given, "place")))
    a = Side.of(_entry(given, "a"), source.side.params)
    other = given.get("b")
    b = a.nominal if other is None else Side.of(other, source.side.params)
    return source, (a, b), Draws.of(_entry(given, "draws"), source.stimuli)


def _entry(given: Any, name: str) -> Any:
    if not isinstance(given, Mapping) or name not in given:
        raise ControlError(name, f"a request needs {name!r}, got {given!r:.80}")
    return given[name]


def _place_words(place: Place) -> dict[str, Any]:
    return {"kind": place.kind, "nodes": place.nodes, "seed": place.seed, "path": place.path}
