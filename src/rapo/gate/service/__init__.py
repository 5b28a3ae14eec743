"""The gate over HTTP: a thin layer over `rapo.gate.Gate`. It needs the extra `rapo-rl[gate]`."""
