"""An operator, and the crooked road of their answers."""

from collections.abc import AsyncGenerator

import pytest

from tests.evidence.crooked_road import CrookedRoad, crooked
from tests.evidence.issuing import Issuing, open_issuing
from tests.stage import opened

issuing = opened(open_issuing)


@pytest.fixture
async def road(issuing: Issuing) -> AsyncGenerator[CrookedRoad]:
    async with crooked(issuing) as road:
        yield road
