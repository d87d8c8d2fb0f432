"""Lines on networks that their packages do not cover."""
