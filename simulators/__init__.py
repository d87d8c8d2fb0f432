"""Simulated outside systems: servers of their own that speak the same wires as the real ones."""
