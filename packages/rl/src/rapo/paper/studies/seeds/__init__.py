"""How much of the spread is the optimiser's: several of its seeds on the same graphs."""
