"""One wrong operator, number or condition at a time: do the tests notice?

Of the known tools mutmut wraps functions, which numba cannot compile, and cosmic-ray edits the tree
in place, where kernels cached on disk would be served stale.
"""
