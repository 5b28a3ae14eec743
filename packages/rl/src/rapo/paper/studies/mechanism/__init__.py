"""Why replay is suppressed: odds contraction, scars, containment, action shift, stagnation."""
