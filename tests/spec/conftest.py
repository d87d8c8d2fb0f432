"""The whole service."""

from tests.contract.stage import open_service_house
from tests.stage import opened

house = opened(open_service_house, faultless=True)
