"""RAPO on networks that nothing was tuned for."""
