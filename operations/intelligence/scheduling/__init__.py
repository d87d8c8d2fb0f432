"""Schedules: when they fire, how they run, who reads them."""
