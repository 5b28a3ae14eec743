"""Benchmarks: `python -m benchmarks` prints measured figures beside their targets."""
