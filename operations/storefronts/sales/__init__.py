"""From checkout to the eSIM, the added data or the refund."""
