"""Why a line has no data, and where it has coverage."""
