"""Whom clients in tests trust: one authority in place of a hundred, since to read those takes 25 ms of every client and none is asked."""

import atexit
import os
import tempfile
from pathlib import Path

import certifi

PREFIX = "test-authority-"
END = "-----END CERTIFICATE-----\n"


def use() -> None:
    """For this process and all that it starts, whatever was given: a test that asks somebody outside is wrong."""
    if PREFIX in os.environ.get("SSL_CERT_FILE", ""):  # a worker's is its controller's
        return
    bundle = Path(certifi.where()).read_text()
    path = Path(tempfile.gettempdir()) / f"{PREFIX}{os.getpid()}.pem"
    path.write_text(bundle[: bundle.index(END) + len(END)])
    atexit.register(path.unlink, missing_ok=True)
    os.environ["SSL_CERT_FILE"] = str(path)
