"""A floor for each test."""

from tests.fulfilment.floor import open_floor
from tests.stage import opened, opened_on_both

floor = opened(open_floor)
on_both = opened_on_both(open_floor)
