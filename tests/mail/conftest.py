"""A certificate authority for mail servers on loopback."""

import ssl
from pathlib import Path

import pytest

from tests.clients.webhooks.authority import self_signed


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts of a server called localhost and of a client that trusts it."""
    return self_signed(tmp_path, "localhost")
