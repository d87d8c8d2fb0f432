"""The machine: declarations, the catalogue and the one pipeline. It knows no domain, no HTTP, no SQL and no upstream."""
