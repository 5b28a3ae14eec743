"""Graphs, regions and the cascade engine."""
