"""Pages for people: rendered here, without script."""
