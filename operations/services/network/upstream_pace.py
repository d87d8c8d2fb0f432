"""The pace of what the worker writes to the charging system: an organisation's own calls share its bucket and its figure."""

from operations.deps import Deps
from registry.policy import upstream_bucket
from registry.throttle import Wait


def take_token(deps: Deps, organisation: str) -> Wait | None:
    """Take the token of one write, or say how long to wait."""
    if not deps.limits.burst_enabled:
        return None
    rate = deps.limits.upstream_writes_per_second
    return deps.throttle.take(upstream_bucket(organisation), rate, int(rate), deps.clock.monotonic())


def wait_for_token(deps: Deps, organisation: str) -> Wait | None:
    """How long until there is one, without taking it."""
    if not deps.limits.burst_enabled:
        return None
    rate = deps.limits.upstream_writes_per_second
    return deps.throttle.wait(upstream_bucket(organisation), rate, int(rate), deps.clock.monotonic())
