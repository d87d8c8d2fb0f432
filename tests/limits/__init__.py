"""Limits of money on credentials: the ledger, what each operation makes due, and the worst case against adversaries."""
