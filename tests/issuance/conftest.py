"""A stage for each test."""

from tests.issuance.stage import open_issuance_stage
from tests.stage import opened

stage = opened(open_issuance_stage)
