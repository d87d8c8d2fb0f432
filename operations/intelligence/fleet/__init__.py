"""The health of a whole fleet, and what its accounts have left."""
