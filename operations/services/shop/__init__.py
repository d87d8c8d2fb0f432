"""Orders of shops, from checkout to eSIM or refund."""
