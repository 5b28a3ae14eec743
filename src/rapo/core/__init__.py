"""Harm memory and deformation: the mathematics, written once."""
