"""Schedules of reports: boundaries through changes of the clock, one run each, deliveries, and what is left of them."""
