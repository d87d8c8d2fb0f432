"""A bureau over each database."""

from tests.schedules.bureau import open_bureau
from tests.stage import opened, opened_on_both

on_both = opened_on_both(open_bureau)
bureau = opened(open_bureau)
