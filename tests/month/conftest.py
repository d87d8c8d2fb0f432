"""A month that has not begun."""

from tests.month.fleet import open_month
from tests.stage import opened

month = opened(open_month, lines=40)
