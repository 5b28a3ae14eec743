"""Table 1: every method on 250 nodes, ours beside the paper's."""
