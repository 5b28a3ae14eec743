"""The paper's cascade on a graph as a platform of the suite: its entry and its baseline."""
