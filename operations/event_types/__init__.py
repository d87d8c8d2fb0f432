"""The types of events, each declared once: what happens, what its event says, and who may read it."""
