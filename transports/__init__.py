"""The doors: each reads the catalogue, none knows an operation by name."""
