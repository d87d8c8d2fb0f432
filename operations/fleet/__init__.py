"""The read model of a fleet: how the charging system is read in the background, and what the rest looks at instead of it."""
