"""Events, and sending them to endpoints."""
