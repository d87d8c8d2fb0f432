"""How secrets are kept: sealed, bound to their rows, and sealed again."""
