"""What several domains need of the charging system."""
