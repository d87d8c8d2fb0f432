"""Approvals: what a program asks for waits until a person says yes at the page, and is done once."""
