"""A whole fleet: reading it, and its state."""
