"""The house of the identity tests."""

from tests.identity.house import open_identity_house
from tests.stage import opened

house = opened(open_identity_house)
