"""A log of events over SQLite, and over each database."""

from tests.events.log_office import open_log_office
from tests.stage import opened, opened_on_both

office = opened(open_log_office, faultless=True)
on_both = opened_on_both(open_log_office, faultless=True)
