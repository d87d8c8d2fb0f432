"""What lines cost and bring in, and what would lower it: pure functions of use, packages, tariffs, zones and steering."""
