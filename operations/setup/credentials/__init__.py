"""What credentials of an organisation are held to."""
