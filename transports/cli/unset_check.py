"""What is left at its default and matters to a service that others use: `doctor` says so."""

import os
from collections.abc import Iterator

from registry.limits import TIERS, TierLimits
from transports.cli.finding import Finding, Note
from transports.settings import Settings

PROXIES = "SERVICE_TRUSTED_PROXIES is unset: behind a proxy all who show no credential share one address, and its limits"

NO_ADDRESS = (
    "SERVICE_BASE_URL is empty: Host names that a proxy hands on are refused with 421, unless SERVICE_ALLOWED_HOSTS has them, "
    "and links lead to the address that the server listens on"
)


def unset(settings: Settings) -> Iterator[Finding]:
    """Limits, authorities and proxies. Only in production is a proxy to be expected."""
    for tier, limits in settings.tiers.items():
        name, shown = f"SERVICE_LIMITS_{tier.upper()}", shown_limits(limits)
        yield Finding("limits", f"{tier}: {shown}" + (f"; {name} is unset" if limits == TIERS[tier] else ""))
    yield Finding("trust", trusted(settings))
    if settings.trusted_proxies:
        yield Finding("proxies", ", ".join(map(str, settings.trusted_proxies)))
        if not settings.base_url:
            yield Note("proxies", NO_ADDRESS)
    elif settings.env == "production":
        yield Note("proxies", PROXIES)


def shown_limits(limits: TierLimits) -> str:
    """In words."""
    return (
        f"{limits.calls_per_day} calls a day, {limits.burst_per_second:g} a second ({limits.burst_size} at once), "
        f"{limits.ai_calls_per_day} questions to a model a day"
    )


def trusted(settings: Settings) -> str:
    """Whose certificates are accepted."""
    instead = os.environ.get("SSL_CERT_FILE", "")
    public = f"the authorities in {instead} (SSL_CERT_FILE)" if instead else "public authorities"
    return public + (f", and those in {settings.ca_file}" if settings.ca_file is not None else "; SERVICE_CA_FILE is unset")
