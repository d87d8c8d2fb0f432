"""Events: every type happens once, through a door."""
