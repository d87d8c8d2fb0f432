"""The processor's objects as our records, a noun a file."""
