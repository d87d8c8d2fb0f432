"""Simulated outside systems that speak the same wires as the real ones."""
