"""Operations on the money of an organisation that is at the payment processor."""
