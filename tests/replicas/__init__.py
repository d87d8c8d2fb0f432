"""Several servers and workers on one database, as real processes."""
