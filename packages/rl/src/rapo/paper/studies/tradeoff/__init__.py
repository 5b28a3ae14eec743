"""The trade-off of utility and safety: RAPO under changed fields, baselines and shields."""
