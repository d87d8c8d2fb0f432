"""Calls that wait for a person: how they are kept, who is told of them, and how they are executed."""
