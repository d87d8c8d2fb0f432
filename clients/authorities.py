"""The certificate authorities that every outside system is checked against."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # start-up budget
    import ssl
    from pathlib import Path


def authorities(ca_file: Path | None = None) -> ssl.SSLContext:
    """Public authorities, and the operator's own: `ca_file` is a PEM file of theirs (SERVICE_CA_FILE); None: what the environment names.

    Choice: SSL_CERT_FILE takes the place of the public ones, as OpenSSL has it; SERVICE_CA_FILE is trusted beside them, so that the
    service's own network and the internet are reached alike.
    """
    named = str(ca_file) if ca_file is not None else os.environ.get("SERVICE_CA_FILE", "")
    return _read(os.environ.get("SSL_CERT_FILE", ""), named)


@cache
def _read(instead: str, beside: str) -> ssl.SSLContext:
    """Reading them takes 25 ms, so all that call outside share them."""
    import ssl

    import httpx  # brings the bundle of public authorities, the same on every machine

    context = ssl.create_default_context(cafile=instead) if instead else httpx.create_ssl_context(trust_env=False)
    if beside:
        context.load_verify_locations(cafile=beside)
    return context
