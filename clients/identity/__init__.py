"""Session tokens of an identity provider, verified against its published keys."""
