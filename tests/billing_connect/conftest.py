"""The whole service."""

from tests.contract.stage import open_house
from tests.stage import opened

house = opened(open_house, faultless=True)
