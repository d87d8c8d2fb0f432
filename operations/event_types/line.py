"""Events of lines of the fleet."""
