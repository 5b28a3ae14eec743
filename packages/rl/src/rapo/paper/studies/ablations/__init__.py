"""Ablations: forgetting scars, partial deployment, regions, and harm that is told wrongly."""
