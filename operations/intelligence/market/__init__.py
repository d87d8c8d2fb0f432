"""What four weeks of a fleet say to a seller."""
