"""The networks of the study: real ones from a folder of data, classics, and generated ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx

from rapo.cascade.graph import Graph
from rapo.graphs.generate import generate
from rapo.graphs.load import from_networkx, load_edges

CLEAN: dict[str, Any] = {"self_loops": "drop", "duplicates": "drop"}


@dataclass(frozen=True)
class Network:
    """One network and how it is loaded; everything else about it is the default."""

    name: str
    sensitive: str
    """Where V_sens comes from: `ball`, or the label that names it."""
    folder: str | None = None
    """Below the folder of data; None for one that needs no file."""
    labels: str | None = None
    """File of the labels in that folder."""
    classic: str | None = None
    """Function of networkx that makes it, for the classics."""
    nodes: int = 0
    """Size of a generated one."""

    @property
    def key(self) -> str:
        """Name and V_sens, as files are called."""
        if self.sensitive == "ball":
            return self.name
        return f"{self.name}-{self.sensitive.replace('=', '-').replace(' ', '-')}"

    @property
    def generated(self) -> bool:
        """Whether it is the paper's generator, which is fitted on request."""
        return self.nodes > 0

    def missing(self, data: Path) -> bool:
        """Whether its file is not there."""
        return self.folder is not None and not (data / self.folder / "edges.csv.gz").exists()

    def contents(self, data: Path) -> list[str]:
        """What the files of the network hold, as digests: another folder is another network."""
        if self.folder is None:
            return []
        names = ("edges.csv.gz", self.labels)
        paths = [data / self.folder / name for name in names if name is not None]
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]

    def load(self, data: Path) -> Graph:
        """The graph, with V_sens a ball or a label and all else at its default."""
        if self.generated:
            return generate(self.nodes, 0)
        chosen: dict[str, Any] = dict(CLEAN)
        if self.sensitive != "ball":
            chosen |= {"sensitive": self.sensitive, "sensitive_part": "largest"}
        if self.classic is not None:
            return from_networkx(getattr(networkx, self.classic)(), **chosen)
        assert self.folder is not None
        if self.labels is not None:
            chosen["labels"] = data / self.folder / self.labels
        return load_edges(data / self.folder / "edges.csv.gz", **chosen)


EMAIL, CONGRESS = "email_eu_core", "congress_twitter"
NETWORKS = (
    Network(EMAIL, "ball", EMAIL, "labels.csv.gz"),
    Network(EMAIL, "department=14", EMAIL, "labels.csv.gz"),
    Network(CONGRESS, "ball", CONGRESS, "nodes.csv.gz"),
    Network(CONGRESS, "party=R", CONGRESS, "nodes.csv.gz"),
    Network("wiki_vote", "ball", "wiki_vote"),
    Network("bitcoin_otc", "ball", "bitcoin_otc"),
    Network("karate", "ball", classic="karate_club_graph"),
    Network("karate", "club=Officer", classic="karate_club_graph"),
    Network("davis", "ball", classic="davis_southern_women_graph"),
    Network("les_miserables", "ball", classic="les_miserables_graph"),
    *(Network(f"generated-{n}", "ball", nodes=n) for n in (50, 100, 250, 500, 1000, 5000)),
)
"""In the order of the tables."""
