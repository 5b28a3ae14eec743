"""Replay itself: a transient penalty throttles, decays, and the same cascade comes back."""
