"""`reseller doctor`: every problem with its fix."""

import os
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from storage.migrate import HEAD
from tests.cli.reseller import reseller, said
from tests.running import running
from transports.settings import PREFIX, Settings


def findings(place: Path, **settings: str) -> dict[str, tuple[str, str | None]]:
    """What is wrong, by subject: how it stands, and the fix."""
    done = reseller("doctor", cwd=place, **{"SERVICE_PORT": "0", **settings})
    assert "Traceback" not in done.stderr
    found = dict[str, tuple[str, str | None]]()
    for state, subject, text, fix in re.findall(r"^(ok |BAD)  (\w+) +(.*)(?:\n     fix: (.*))?$", done.stdout, re.MULTILINE):
        assert bool(fix) == (state == "BAD")
        if fix:
            found[subject] = (text, fix)
    assert (done.returncode, done.stderr) == ((1, "something needs mending, see above\n") if found else (0, ""))
    return found


def test_all_is_well_before_the_first_start_and_after_it(tmp_path: Path) -> None:
    assert findings(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []
    with running(tmp_path / "data") as server:
        port = server.base_url.rpartition(":")[2]
        assert f"port       127.0.0.1:{port} is held by this service, which answers\n" in said("doctor", cwd=tmp_path, SERVICE_PORT=port)
    assert findings(tmp_path) == {}


def test_an_unknown_setting_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    [(text, fix)] = findings(tmp_path, SERVICE_PROT="1").values()
    assert text.startswith("unknown setting SERVICE_PROT")
    assert fix == "known settings: " + ", ".join(PREFIX + name.upper() for name in Settings.model_fields)


@pytest.mark.parametrize(
    ("settings", "subject", "state"),
    [
        ({"SERVICE_SECRET_KEYS": "k1:c2hvcnQ="}, "keyring", "SERVICE_SECRET_KEYS: key 'k1' of the keyring has 5 bytes; AES-256 takes 32"),
        ({"SERVICE_DATABASE_URL": "postgresql://127.0.0.1:1/none"}, "database", "PostgreSQL: the database cannot be reached"),
        ({"SERVICE_DATABASE_URL": "postgresql://127.0.0.1:1/none"}, "keyring", "SERVICE_SECRET_KEYS: missing; "),
        ({"SERVICE_DATABASE_URL": "mysql://127.0.0.1/none"}, "settings", "SERVICE_DATABASE_URL must start with postgresql://"),
        ({"SERVICE_ENV": "production"}, "settings", "SERVICE_ENV=production needs SERVICE_DATABASE_URL, "),
        ({"SERVICE_HOST": "192.0.2.1"}, "port", "192.0.2.1:0 Cannot assign requested address"),
    ],
    ids=["short-key", "unreachable", "no-keyring", "scheme", "production", "host"],
)
def test_what_is_wrong_is_named_with_its_fix(settings: dict[str, str], subject: str, state: str, tmp_path: Path) -> None:
    assert findings(tmp_path, **settings)[subject][0].startswith(state)


def test_a_database_that_is_damaged_or_of_another_version_is_found(tmp_path: Path) -> None:
    said("db", "upgrade", cwd=tmp_path)
    file = tmp_path / "data" / "service.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("update alembic_version set version_num = '9999'")
        database.commit()
    state, fix = findings(tmp_path)["database"]
    assert f"this program knows up to {HEAD}" in state and fix is not None and fix.startswith("run the newer program")
    file.write_text("not a database " * 100)
    assert findings(tmp_path)["database"][0] == "data/service.db: the file is not a database"


def test_a_keyring_that_others_can_read_and_a_clock_that_went_back_are_found(tmp_path: Path) -> None:
    with running(tmp_path / "data"):
        pass
    (tmp_path / "data" / "keyring").chmod(0o644)
    tomorrow = time.time() + 86_400
    os.utime(tmp_path / "data" / "service.db", (tomorrow, tomorrow))
    found = findings(tmp_path)
    assert found["keyring"] == ("data/keyring can be read by others", "chmod 600 data/keyring")
    assert re.fullmatch(r"86[34]\d\d s behind the last write to data/service.db", found["clock"][0])
    assert found.keys() == {"keyring", "clock"}
