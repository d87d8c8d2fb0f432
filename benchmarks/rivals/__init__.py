"""What the service is measured against: other servers that do the same work on the same tables."""
