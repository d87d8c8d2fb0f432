"""The outside systems, each behind one client; storage is unknown here."""
