"""Verdicts on lines: what is wrong with one, since when, what it costs, and what mends it."""
