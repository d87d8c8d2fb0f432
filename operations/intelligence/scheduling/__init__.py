"""Schedules of reports: when they fire, what they run, and how."""
