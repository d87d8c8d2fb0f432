"""What is kept of eSIMs that are drawn: the ledger, and what was seen just before."""
