"""Fixtures of the lab's tests: a small page that is really served, and files to open."""

from __future__ import annotations

import math
import threading

import pytest
import uvicorn
from lab_page import opened
from waiting import until

from rapo.show.lab.api import Api
from rapo.show.lab.metrics import measure
from rapo.show.lab.request import Episodes, SourceId, Variant
from rapo.show.lab.server import Lab
from rapo.show.lab.sources import find_source

NODES = 60
EPISODES = 4


@pytest.fixture(scope="session")
def place():
    return SourceId(nodes=NODES, seed=1)


@pytest.fixture(scope="session")
def source(place):
    return find_source(place)


@pytest.fixture(scope="session")
def rows():
    """Mean, low and high of every metric that a choice comes to, by side and name."""

    def found(choice):
        source = find_source(SourceId.parse(choice["source"]))
        a = Variant.parse(choice["a"], source.variant.params)
        b = a.nominal if choice["b"] is None else Variant.parse(choice["b"], source.variant.params)
        episodes = Episodes.parse(choice["episodes"], source.stimuli)
        return {
            (name, row["name"]): tuple(
                None if math.isnan(row[key]) else row[key] for key in ("mean", "low", "high")
            )
            for name, side in zip("ab", (a, b), strict=True)
            for row in measure(source, side, episodes).rows
        }

    return found


@pytest.fixture(scope="session")
def edges(tmp_path_factory):
    """A CSV of a ring of cliques, 40 nodes."""
    path = tmp_path_factory.mktemp("edges") / "net.csv"
    lines = ["src,dst"]
    for block in range(5):
        inside = range(8 * block, 8 * block + 8)
        lines += [f"{u},{v}" for u in inside for v in inside if u != v]
        lines.append(f"{8 * block},{(8 * block + 9) % 40}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """A RAPO of one rollout on the graph of the page."""
    pytest.importorskip("torch", reason="checkpoints need torch")
    from rapo.agents.config import PPOConfig
    from rapo.agents.run_config import graph_run
    from rapo.agents.train import train

    tiny = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)
    out = tmp_path_factory.mktemp("run")
    train(graph_run(method="RAPO", nodes=NODES, graph_seed=1, steps=256, ppo=tiny), out)
    return out


@pytest.fixture(scope="session")
def lab(place):
    """A lab that listens, and its address."""
    made = Lab(Api(place, {"episodes": {"count": EPISODES}}), token="the-token")
    config = uvicorn.Config(made.app, port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started, thread.is_alive)
    port = server.servers[0].sockets[0].getsockname()[1]
    made.address = f"http://127.0.0.1:{port}"
    yield made
    server.should_exit = True
    thread.join(20)
    made.close()


@pytest.fixture
def page(browser, lab):
    made = opened(browser, lab)
    yield made
    refusals = ("422", "413", "409")  # the browser's own words for an answer that says why
    assert [w for w in made.complaints if not any(code in w for code in refusals)] == []
    strangers = [u for u in made.asked if not u.startswith((lab.address, "data:", "blob:"))]
    assert strangers == []
    made.context.close()
