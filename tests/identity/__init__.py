"""Sessions of an external identity provider, through the doors."""
