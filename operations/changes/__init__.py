"""Many lines at once: tags that say which, and changes that are planned, approved, applied and undone."""
