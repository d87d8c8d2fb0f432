"""Our public address, in the one spelling that browsers use."""

from ipaddress import ip_address
from urllib.parse import urlsplit


def as_browsers_write(address: str) -> str:
    """Our address as a browser's Origin has it, in lower case and without a port that goes without saying: forms are compared with it."""
    parts = urlsplit(address)
    host, default = parts.hostname or "", {"http": 80, "https": 443}.get(parts.scheme)
    host = f"[{ip_address(host)}]" if ":" in host else host
    port = "" if parts.port in (None, default) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def is_readable(address: str) -> bool:
    """Whether its host and its port can be."""
    try:
        return bool(as_browsers_write(address))
    except ValueError:
        return False
