"""A month of an operator's fleet on the simulated network, seen through our operations alone."""
