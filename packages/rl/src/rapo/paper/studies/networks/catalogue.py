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
    """What V_sens is made of: `ball`, or the label that names it."""
    folder: str | None = None
    """Folder of the network below the folder of data; None for one that needs no file."""
    labels: str | None = None
    """File of the labels in that folder."""
    classic: str | None = None
    """Function of networkx that makes a classic network."""
    nodes: int = 0
    """Number of nodes of a generated network, else 0."""

    @property
    def key(self) -> str:
        """Name and V_sens in the form that names of files have."""
        if self.sensitive == "ball":
            return self.name
        return f"{self.name}-{self.sensitive.replace('=', '-').replace(' ', '-')}"

    @property
    def title(self) -> str:
        """Name, and V_sens unless that is a ball, as tables and figures show them."""
        where = "" if self.sensitive == "ball" else f", {self.sensitive}"
        return self.name.split("-")[0].replace("_", " ") + where

    def files(self, data: Path) -> list[Path]:
        """Files that the network is loaded from, in a folder of data."""
        if self.folder is None:
            return []
        names = ("edges.csv.gz", self.labels)
        return [data / self.folder / name for name in names if name is not None]

    def missing(self, data: Path) -> bool:
        """Whether a file of the network is not in the folder of data."""
        return not all(path.exists() for path in self.files(data))

    def contents(self, data: Path) -> list[str]:
        """Digests of the network's files: other files under the same name are another network."""
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in self.files(data)]

    def load(self, data: Path) -> Graph:
        """Load or make the graph, with V_sens a ball or a label and all else at its default."""
        if self.nodes:
            return generate(self.nodes, 0)
        options: dict[str, Any] = dict(CLEAN)
        if self.sensitive != "ball":
            options |= {"sensitive": self.sensitive, "sensitive_part": "largest"}
        if self.classic is not None:
            return from_networkx(getattr(networkx, self.classic)(), **options)
        edges, *labels = self.files(data)
        if labels:
            options["labels"] = labels[0]
        return load_edges(edges, **options)


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
