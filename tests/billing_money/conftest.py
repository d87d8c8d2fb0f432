"""The stage, with an account of a test's own and with one of the simulated processor."""

from tests.billing_money.stage import open_money_stage
from tests.stage import opened

stage = opened(open_money_stage)
"""What happens in the account is what a test tells."""
shop = opened(open_money_stage, connected=True)
"""What happens in the account happens at the simulated processor."""
