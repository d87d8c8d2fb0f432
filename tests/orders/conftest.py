"""A shop for each test, with the storefront key set, and one where it is not."""

from tests.orders.stage import open_orders_shop
from tests.stage import opened

shop = opened(open_orders_shop)
open_door = opened(open_orders_shop, key="")
"""The order's id is the only secret."""
