"""What is forgotten of codes, mails and logins, and when."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from storage.access_grants import AccessGrantTable
from storage.allowances import AllowanceTable
from storage.audit import AuditTable
from storage.browser_sessions import BrowserSessionTable
from storage.claims import ClaimTable
from storage.engine.drivers import Value
from storage.engine.sql import Command, Connection, Query, TableDescription
from storage.engine.store import Store, open_store
from storage.engine.sweep import SWEPT_AT_ONCE
from storage.invitations import InvitationTable
from storage.mail import MailTable
from storage.oauth_clients import AuthorizationRequestTable, OauthClientTable
from storage.oauth_tokens import AuthorizationCodeTable, RefreshTokenTable
from storage.organisations import create_organisation
from storage.people import create_person
from storage.quota import QuotaTable
from storage.verifications import VerificationTable
from tests.databases import migrated_sqlite
from tests.world import NOON, SettableClock
from transports.worker.retention import retention_chore

DAY = 86_400.0
Row = Mapping[str, Value]


class Count(NamedTuple):
    many: int


@pytest.fixture
async def store(tmp_path: Path, database_url: str | None) -> AsyncGenerator[Store]:
    store = open_store(database_url or migrated_sqlite(tmp_path))
    yield store
    await store.aclose()


def fill(connection: Connection, *, rows: Sequence[tuple[type[TableDescription], Row]]) -> None:
    create_person(connection, id="usr_1", now=NOON)
    create_organisation(connection, id="org_1", name="Fjord", tier="free", now=NOON)
    for model, row in rows:
        columns = {column.name: sa.bindparam(column.name) for column in model.table.c}
        connection.run(Command(sa.insert(model.table).values(columns)), **{**dict.fromkeys(columns), **row})


def grant(id: str, client: str, *, expires: float, revoked: float | None = None) -> tuple[type[TableDescription], Row]:
    row: Row = {
        "id": id,
        "person_id": "usr_1",
        "client_id": client,
        "client_name": "",
        "scopes": "read",
        "resource": "",
        "created": NOON,
        "expires_at": NOON + expires,
        "revoked_at": None if revoked is None else NOON + revoked,
    }
    return AccessGrantTable, row


def client(id: str, *, created: float, used: float | None = None) -> tuple[type[TableDescription], Row]:
    used_at = None if used is None else NOON + used
    return OauthClientTable, {"id": id, "metadata_json": "{}", "created": NOON + created, "used": used_at}


def of_grant(model: type[TableDescription], digest: bytes, of: str, expires: float) -> tuple[type[TableDescription], Row]:
    row = {"digest": digest, "grant_id": of, "client_id": "c", "scopes": "read", "details": "{}", "expires_at": NOON + expires}
    return model, {name: value for name, value in row.items() if name in model.table.c}


ONE: Sequence[tuple[type[TableDescription], Row, float]] = (
    (
        VerificationTable,
        {
            "digest": b"d",
            "purpose": "sign_in",
            "address": "a@x",
            "code_digest": b"c",
            "tries": 0,
            "details": "{}",
            "expires_at": NOON + 600,
        },
        600,
    ),
    (AllowanceTable, {"name": "n", "times": "[]", "updated": NOON}, 7200),
    (MailTable, {"id": "mail_1", "sealed": "x", "attempts": 0, "due_ms": 0, "expires_at": NOON + 600}, 600 + 3600),
    (
        BrowserSessionTable,
        {"digest": b"d", "id": "ses_1", "person_id": "usr_1", "created": NOON, "seen": NOON + 9e6, "expires_at": NOON + 7 * DAY},
        7 * DAY,
    ),
    (
        InvitationTable,
        {
            "id": "inv_1",
            "digest": b"d",
            "organisation_id": "org_1",
            "address": "a@x",
            "role": "member",
            "invited_by": "usr_1",
            "created": NOON,
            "expires_at": NOON + 7 * DAY,
        },
        37 * DAY,
    ),
    (AuthorizationRequestTable, {"digest": b"d", "client_id": "c", "details": "{}", "expires_at": NOON + 600}, 600),
    (*client("never-used", created=0), 7 * DAY),
    (*client("unused", created=-DAY, used=0), 365 * DAY),
    (*grant("expired", "c", expires=90 * DAY), 120 * DAY),
    (*grant("revoked", "c", expires=90 * DAY, revoked=5), 30 * DAY + 5),
    # Of a day, when the next one is over: NOON is the middle of one.
    (QuotaTable, {"organisation": "mail|org_1", "period": "2027-01-15", "used": 3}, 1.5 * DAY),
    (QuotaTable, {"organisation": "key_1", "period": "2027-01-15", "used": 3}, 1.5 * DAY),
)


async def count(store: Store, model: type[TableDescription]) -> int:
    found = await store.read(
        lambda connection: connection.first(Query(Count, sa.select(sa.func.count().label("many")).select_from(model.table)))
    )
    assert found is not None
    return found.many


@pytest.mark.cases
@pytest.mark.parametrize(("model", "row", "seconds"), ONE, ids=[f"{model.__name__}-{row.get('id', '')}" for model, row, _ in ONE])
async def test_it_is_forgotten_when_its_time_is_over_and_not_before(
    model: type[TableDescription], row: Row, seconds: float, tmp_path: Path
) -> None:
    store, clock = open_store(migrated_sqlite(tmp_path)), SettableClock()
    await store.write(fill, rows=[(model, row)])
    clock.advance(seconds - 1)
    await retention_chore(store, clock, print).run()
    assert await count(store, model) == 1
    clock.advance(2)
    await retention_chore(store, clock, print).run()
    assert await count(store, model) == 0
    await store.aclose()


async def test_on_both_databases_a_grant_goes_with_its_codes_and_tokens_and_a_live_one_keeps_its_program(store: Store) -> None:
    rows = [
        grant("gnt_ended", "c", expires=900 * DAY, revoked=0),
        grant("gnt_live", "kept", expires=900 * DAY),
        of_grant(AuthorizationCodeTable, b"1", "gnt_ended", 900 * DAY),
        of_grant(RefreshTokenTable, b"2", "gnt_ended", 900 * DAY),
        of_grant(AuthorizationCodeTable, b"3", "gnt_live", 900 * DAY),
        of_grant(RefreshTokenTable, b"4", "gnt_live", 900 * DAY),
        client("kept", created=-9 * DAY, used=0),
        client("dropped", created=-9 * DAY, used=0),
        *((model, row) for model, row, _ in ONE),
    ]
    await store.write(fill, rows=rows)
    clock = SettableClock()
    clock.advance(400 * DAY)
    await retention_chore(store, clock, print).run()
    assert [await count(store, model) for model in (AccessGrantTable, AuthorizationCodeTable, RefreshTokenTable, OauthClientTable)] == [
        1
    ] * 4
    for model in (VerificationTable, AllowanceTable, MailTable, BrowserSessionTable, InvitationTable, AuthorizationRequestTable):
        assert await count(store, model) == 0


async def test_what_organisations_and_people_used_is_kept(store: Store) -> None:
    used = [(QuotaTable, {"organisation": name, "period": "2026-01-15", "used": 3}) for name in ("org_1", "usr_1", "keyed")]
    await store.write(fill, rows=used)
    await retention_chore(store, SettableClock(), print).run()
    assert await count(store, QuotaTable) == 3


@pytest.mark.long
@pytest.mark.parametrize("model", [ClaimTable, AuditTable], ids=lambda model: model.__tablename__)
async def test_what_is_more_than_one_step_takes_is_forgotten_too(store: Store, model: type[TableDescription]) -> None:
    old = {"fingerprint": b"", "state": "done", "claimed": 1, "expires_at": int(NOON), "at": 1.0, "milliseconds": 1.0, "status": 200}
    columns, (name, of) = model.table.c, ("key", str) if model is ClaimTable else ("id", int)

    def row(number: int, **other: Value) -> tuple[type[TableDescription], Row]:
        given: Row = {column.name: "x" for column in columns if isinstance(column.type, sa.Text)} | old | other
        return model, {key: value for key, value in given.items() if key in columns} | {name: of(number)}

    many = SWEPT_AT_ONCE + 1
    await store.write(fill, rows=[*(row(number) for number in range(many)), row(many, expires_at=None, at=NOON)])
    await retention_chore(store, SettableClock(), print).run()
    assert await count(store, model) == 1
