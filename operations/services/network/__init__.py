"""The caller's way to the charging system, and what of it is theirs."""
