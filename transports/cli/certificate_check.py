"""What is wrong with the certificate of an outside system: a check of `doctor` whose question got no answer names it."""

import socket
import ssl
from urllib.parse import urlsplit

from clients.authorities import authorities
from transports.cli.finding import Finding
from transports.settings import Settings

SECONDS = 5.0
FIX = (
    "have it certified for this name, or name the authority that signed it: SERVICE_CA_FILE is trusted beside the public ones, "
    "SSL_CERT_FILE in their place"
)


def certificate_fault(address: str, settings: Settings) -> str | None:
    """Why the certificate at an https address is not accepted, in OpenSSL's words; None where it is, or where nobody answers."""
    parts = urlsplit(address)
    if parts.scheme != "https" or parts.hostname is None:
        return None
    try:
        with (
            socket.create_connection((parts.hostname, parts.port or 443), timeout=SECONDS) as raw,
            authorities(settings.ca_file).wrap_socket(raw, server_hostname=parts.hostname),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except (OSError, UnicodeError):
        return None


def unanswered(subject: str, address: str, why: str, fix: str, settings: Settings) -> Finding:
    """The finding about a system that gave no answer: its certificate where that is the reason, else `why` and `fix`."""
    fault = certificate_fault(address, settings)
    if fault is None:
        return Finding(subject, f"{address}: {why}", fix)
    return Finding(subject, f"{address}: its certificate is not accepted ({fault})", FIX)


def identity(settings: Settings) -> Finding:
    """The identity provider: ours, or whether the certificate at the address of its keys is accepted."""
    if settings.own_identity:
        return Finding("identity", "built in")
    fault = certificate_fault(settings.auth_jwks_url, settings)
    if fault is None:
        return Finding("identity", f"{settings.auth_jwks_url}, whose keys are fetched when the first token comes")
    return Finding("identity", f"{settings.auth_jwks_url}: its certificate is not accepted ({fault})", FIX)
