"""A simulated network behind an online charging system: same wire, same quirks, a clock of its own."""
