"""What a process keeps out of its log by value, and whose words it takes over."""

import logging
from collections.abc import Iterator

import pytest

from registry.clock import SystemClock
from transports.http.server import LOGGED_LIBRARIES, listen_to_libraries
from transports.logs import Logs, OpeningLog, loaded_secrets
from transports.settings_files import load_settings

KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
OTHER = "HxwdHhsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA="
SETTINGS = load_settings(
    {
        "SERVICE_INTERNAL_API_KEY": "internal-canary-5f1d2c7a90",
        "SERVICE_MCP_STATE_KEYS": "state-key-that-is-new,state-key-that-is-old",
    }
)


@pytest.fixture
def lines() -> list[bytes]:
    return []


@pytest.fixture
def logs(lines: list[bytes]) -> Logs:
    return Logs(lines.append, SystemClock(), secrets=loaded_secrets(SETTINGS, f"k1:{KEY}, k2:{OTHER}"))


@pytest.mark.parametrize(
    "secret", [KEY, KEY.rstrip("="), OTHER, "internal-canary-5f1d2c7a90", "state-key-that-is-new", "state-key-that-is-old"]
)
def test_a_secret_never_reaches_the_log_by_itself(secret: str, logs: Logs, lines: list[bytes]) -> None:
    logs.note(f"about k1 and {secret}!")
    [line] = lines
    assert secret.rstrip("=").encode() not in line and b"about k1 and ***" in line


def test_what_is_noted_before_the_log_opens_is_written_when_it_opens(logs: Logs, lines: list[bytes]) -> None:
    opening = OpeningLog()
    opening.note(f"early {KEY}")
    opening.open(logs)
    opening.note("late")
    assert [(b"early ***" in line, b"late" in line) for line in lines] == [(True, False), (False, True)]


@pytest.fixture
def loggers() -> Iterator[list[logging.Logger]]:
    """The libraries' loggers, as they were afterwards."""
    found = [logging.getLogger(name) for name in LOGGED_LIBRARIES]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in found]
    yield found
    for logger, (handlers, level, propagate) in zip(found, before, strict=True):
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)


def test_errors_of_libraries_become_lines_of_ours_with_secrets_masked(
    logs: Logs, lines: list[bytes], loggers: list[logging.Logger]
) -> None:
    listen_to_libraries(logs)
    assert {"asyncio", "aiohttp", "httpx", "httpcore"} < {logger.name for logger in loggers}
    for logger in loggers:
        logger.error("failed with %s", KEY)
        logging.getLogger(f"{logger.name}.client").error("failed with %s", KEY)
        logger.warning("nothing to see")
    assert len(lines) == 2 * len(loggers)
    assert all(b"failed with ***" in line and KEY.encode() not in line for line in lines)
