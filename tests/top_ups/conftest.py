"""A counter for each test."""

from tests.stage import opened
from tests.top_ups.counter import open_counter

counter = opened(open_counter)
