"""The stage of these tests."""

from tests.accounts.stage import open_accounts_stage
from tests.stage import opened

stage = opened(open_accounts_stage)
