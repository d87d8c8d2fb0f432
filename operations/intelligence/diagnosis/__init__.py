"""Why a line has no data."""
