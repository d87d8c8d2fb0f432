"""The HTTP door: a table of routes, requests read with limits, answers rendered."""
