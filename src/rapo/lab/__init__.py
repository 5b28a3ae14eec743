"""`rapo lab`: a page on this machine that answers while constants of a run are moved."""
