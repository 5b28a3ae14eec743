"""Gymnasium environments over the cascade engine."""
