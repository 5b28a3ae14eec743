"""`rapo calibrate`: choose what the paper leaves open, on graphs that no evaluation uses."""
