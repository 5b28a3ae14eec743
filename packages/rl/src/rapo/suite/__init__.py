"""`rapo suite`: one scorecard of RAPO, or of any policy, on every platform of the package."""
