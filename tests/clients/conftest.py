"""What all client tests share: the event loop they run on."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
