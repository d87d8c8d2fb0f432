"""The role of the guide that may not change the schema: its SQL is run, the owner migrates, and a server works as the role."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from storage.engine.migrate import downgrade_database, upgrade_database
from storage.engine.revision import REVISIONS
from tests.databases import postgres_url, required_database
from tests.harness.cluster import KEYS
from tests.harness.processes import environment, running

pytestmark = pytest.mark.postgres
GUIDE = Path(__file__).parents[2] / "docs" / "guide-operators.md"
OWNER, ROLE = "reseller_owner", "reseller_app"


def sql_of_the_guide(database: str) -> str:
    """As it stands there, for a database of this name."""
    found = re.search(r"```text\n(CREATE ROLE reseller_app.*?)```", GUIDE.read_text(), re.DOTALL)
    assert found
    assert "DATABASE reseller TO" in found[1]
    return found[1].replace("DATABASE reseller TO", f"DATABASE {database} TO")


def as_user(url: str, user: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{user}:a%20long%20random%20text@" + parts.netloc.rpartition("@")[2]).geturl()


@contextmanager
def owned_database() -> Generator[tuple[str, str] | None]:
    """A new database of the owner's: the superuser's address of it, and its name."""
    with postgres_url() as url:
        if url is None:
            yield None
            return
        name = urlsplit(url).path.removeprefix("/")
        with psycopg.connect(url, autocommit=True) as admin:
            for role in (ROLE, OWNER):
                admin.execute(f"drop role if exists {role}".encode())
            admin.execute(f"create role {OWNER} login password 'a long random text'".encode())
            admin.execute(f"alter database {name} owner to {OWNER}".encode())
        try:
            yield url, name
        finally:
            with psycopg.connect(url, autocommit=True) as admin:
                for role in (ROLE, OWNER):
                    admin.execute(f"reassign owned by {role} to current_user".encode())
                    admin.execute(f"drop owned by {role} cascade".encode())
                    admin.execute(f"drop role {role}".encode())


@pytest.mark.long
def test_the_owner_migrates_and_a_server_works_as_the_role_of_the_guide_which_changes_no_schema(tmp_path: Path) -> None:
    with required_database(owned_database()) as made:
        url, name = made
        owner, role = as_user(url, OWNER), as_user(url, ROLE)
        upgrade_database(owner)
        downgrade_database(owner, REVISIONS[-2])
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(sql_of_the_guide(name).encode())
        upgrade_database(owner)  # what this makes is the role's to use as well
        settings = {"SERVICE_DATABASE_URL": role, "SERVICE_SECRET_KEYS": KEYS, "SERVICE_WORKER": "true"}
        with running(tmp_path / "server", environment(settings)) as server:
            key = {"Authorization": f"Bearer {server.api_key}", "Idempotency-Key": "one"}
            with httpx.Client(base_url=server.base_url, headers=key) as client:
                made_intent = client.post("/v1/connectivity/intents", json={"plan": "test_eu_1gb"})
                assert (made_intent.status_code, client.get("/v1/connectivity/events").json()["data"][0]["type"]) == (201, "esim.issued")
                assert {client.get("/v1/connectivity/products").status_code for _ in range(20)} == {200}
                assert client.get("/health/ready").status_code == 200
            with psycopg.connect(url, autocommit=True) as admin:
                used = admin.execute(b"select distinct usename from pg_stat_activity where application_name like 'reseller%'").fetchall()
            assert used == [(ROLE,)]
        for statement in (b"create table more (id int)", b"alter table organisation add column more int", b"drop table claim"):
            with psycopg.connect(role, autocommit=True) as limited, pytest.raises(psycopg.errors.InsufficientPrivilege):
                limited.execute(statement)
