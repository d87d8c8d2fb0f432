"""Packages that cover what a line uses, and the networks where they work."""
