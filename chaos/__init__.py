"""Faults on purpose: processes that are killed and databases that go away, under load.

`python -m chaos kill` kills a gate that writes to SQLite; `python -m chaos replicas` breaks two
replicas that share PostgreSQL. Both compare what clients were told with what the log holds.
"""
