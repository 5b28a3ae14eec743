"""The lab in a browser: from a slider to redrawn numbers, scrubbing, weight of the page."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from benchmarks.effort import Effort
from benchmarks.table import Row, missing
from rapo.platforms.registration import PLATFORMS
from rapo.show.lab.request import SourceId

TITLE = "rapo lab: 40 episodes of 500/200/500 steps, P0 beside RAPO, measured in Chromium"
CHROMIUM = Path("/usr/bin/chromium")
SIZES = ((250, 300.0), (5000, 1500.0))
"""Nodes, and milliseconds from the slider to the numbers."""
SCRUBBED = 1000
FRAMES = 30
WEIGHT = 300
MOVES = 3
"""Of the slider of a platform, whose numbers take seconds."""
_MOVED = """async () => {
  const slide = document.querySelector("#w_H-slide"), before = window.lab.drawn;
  slide.value = Number(slide.value) + 3;   // by less, its three digits may stay the same
  const start = performance.now();
  slide.dispatchEvent(new Event("input"));
  while (window.lab.drawn === before) await new Promise((done) => setTimeout(done, 1));
  return window.lab.drawn - start;
}"""
"""Milliseconds from a move of the slider until numbers and curves are drawn."""
_SCRUBBED = """async (moves) => {
  const range = document.querySelector("#step");
  let work = 0;
  const start = performance.now();
  for (let i = 0; i < moves; i++) {
    await new Promise(requestAnimationFrame);
    const before = performance.now();
    range.value = (i * 37) % 1200;
    range.dispatchEvent(new Event("input"));
    work += performance.now() - before;
  }
  return [(performance.now() - start) / 1000, work / moves];
}"""
"""Drag the bar to and fro, as often as the browser asks for a frame: seconds, and milliseconds of
script a move. (A mouse that a test moves waits for each frame before its next move.)"""
FRAME_EVENTS = "disabled-by-default-devtools.timeline.frame"
MOVED_TIMES = 240
"""Moves of the bar."""


def measure(effort: Effort) -> list[Row]:
    """Times of the page, each a median."""
    weight = sum(len(file.read_bytes()) for file in (files("rapo.show.lab") / "static").iterdir())
    rows = [Row("weight of the page", weight / 1000, "kB", case="page", at_most=WEIGHT)]
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return [*rows, missing("slider to numbers", "playwright is not installed")]
    if not CHROMIUM.exists():
        return [*rows, missing("slider to numbers", f"there is no {CHROMIUM}")]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        for nodes, most in SIZES:
            effort.progress(f"{nodes} nodes")
            with _page(browser, SourceId(nodes=nodes)) as page:
                times = [page.evaluate(_MOVED) for _ in range(max(effort.rounds, 5) + 2)][2:]
            rows.append(
                Row("slider to redrawn numbers", statistics.median(times), "ms",
                    case=f"{nodes:,} nodes", at_most=most,
                    note=f"median of {len(times)}, {min(times):.0f} to {max(times):.0f}")
            )  # fmt: skip
        effort.progress("scrubbing")
        with _page(browser, SourceId(nodes=SCRUBBED)) as page:
            rows.append(_scrubbing(browser, page))
        for kind in PLATFORMS:
            effort.progress(kind)
            with _page(browser, SourceId(kind)) as page:
                times = [page.evaluate(_MOVED) / 1000 for _ in range(MOVES)]
            rows.append(Row("slider to redrawn numbers", statistics.median(times), "s", case=kind,
                            note=f"median of {MOVES}; with progress and Stop"))  # fmt: skip
        browser.close()
    return rows


def _scrubbing(browser: Any, page: Any) -> Row:
    """Frames a second that the browser episodes while the bar is dragged."""
    browser.start_tracing(page=page, categories=["-*", FRAME_EVENTS])
    seconds, work = page.evaluate(_SCRUBBED, MOVED_TIMES)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    drawn = sum(event["name"] == "DrawFrame" for event in events)
    return Row(
        "scrubbing", min(drawn, MOVED_TIMES) / seconds, "frames/s", case=f"{SCRUBBED:,} nodes",
        at_least=FRAMES,
        note=f"{drawn} frames drawn of {MOVED_TIMES} moves in {seconds:.1f} s, without a GPU; "
        f"{work:.1f} ms of script a move",
    )  # fmt: skip


@contextmanager
def _page(browser: Any, place: SourceId) -> Iterator[Any]:
    """A page of the lab with a film on it."""
    import uvicorn

    from rapo.show.lab.api import Api
    from rapo.show.lab.server import Lab

    lab = Lab(Api(place))
    server = uvicorn.Server(uvicorn.Config(lab.app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    try:
        page.set_default_timeout(600_000)
        page.goto(f"http://127.0.0.1:{port}/?token={lab.token}")
        page.wait_for_function("() => window.lab && window.lab.filmed > 0")
        yield page
    finally:
        page.close()
        server.should_exit = True
        thread.join(30)
        lab.close()
