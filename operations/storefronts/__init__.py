"""Operations on shops: what an operator sells there, what everybody sees, and what buyers ordered."""
