"""What a queue's statements read on PostgreSQL does not grow with what waits, nor a page with what others have: counted row by row in plans
that were carried out."""

import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import psycopg
import pytest

from registry.ids import first_id
from storage.engine.drivers import DriverConnection
from storage.engine.sql import Connection, Statement, postgresql_dialect
from storage.intents import intent_page
from storage.order_queue import CLAIM_ORDER, DUE_ORGANISATIONS
from storage.outbox import claim_deliveries
from storage.reconciliation import CLAIM_UNKNOWN, LIST_GIVEN_BACK, next_due_account
from tests.databases import migrated_postgres, required_database
from tests.storage.test_all_statements import statement_of

pytestmark = [pytest.mark.postgres, pytest.mark.long]
MANY, OWNERS, NOW_MS = 20_000, 5, 1_000_000
ORDERS = f"""
insert into storefront_order
    (id, organisation, storefront, plan, bought, template_id, amount, currency, language, status, payee, tries, created, updated, due_ms,
    refund)
select 'onr_' || n, 'org_' || n % {OWNERS}, 'sf_1', 'sfp_1', '{{}}', 1, 100, 'EUR', 'en', kind.status, 'acct_1', 0, n, n,
    case when kind.status = 'pending_payment' then n end, kind.refund
from generate_series(1, {MANY}) n, lateral (
    select * from (values ('pending_payment', null), ('ready', null), ('failed', 'done')) as kinds(status, refund)
    limit 1 offset case when n % 100 = 0 then 2 when n % 2 = 0 then 1 else 0 end
) kind
"""
ISSUANCES = f"""
insert into issuance
    (organisation, key, operation, principal, account_id, template_id, state, owner, stock, iccid, dispatched, updated, due_ms)
select 'org_' || n % {OWNERS}, 'key-' || n, 'issue', 'key_1', 8101, 1,
    case when n % 2 = 0 then 'outcome_unknown' else 'rolled_back' end, 'rpl_1', 'stk_1', '89' || n, n, n, n
from generate_series(1, {MANY}) n
"""

DELIVERIES = f"""
insert into delivery (id, event_id, endpoint_id, organisation, type, state, attempt, attempts, due_ms, created_ms)
select '{{start}}' || lpad(n::text, 12, '0'), 'evt_' || n, 'we_' || n % {OWNERS}, 'org_' || n % {OWNERS}, 'esim.issued',
    case when n % {OWNERS} <> 0 and n <= 1000 or n > {MANY} - 1000 then 0 else 1 end, 0, 0, n, n
from generate_series(1, {MANY}) n
"""
INTENTS = f"""
insert into intent (id, organisation, status, livemode, details, created, used_bytes, notified_percent)
select 'cni_' || lpad(n::text, 26, '0'), case when n <= 3 then 'org_small' else 'org_' || n % 2 end, 'succeeded', 0, '{{}}', n, 0, 0
from generate_series(1, {MANY}) n
"""
ROWS_OF_DELIVERIES = """
select sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) from pg_stat_xact_user_tables where relname like 'delivery%'
"""
CLAIMS = 15
"""After ten runs at most a prepared statement has the plan that it keeps."""


@pytest.fixture(scope="module")
def filled() -> Iterator[psycopg.Connection]:
    """A database in which a lot waits and more has ended."""
    with required_database(migrated_postgres()) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(ORDERS.encode())
        connection.execute(ISSUANCES.encode())
        connection.execute(INTENTS.encode())
        connection.execute("vacuum analyze")
        yield connection


def rows_read(node: dict[str, Any]) -> int:
    """Rows that a step of a plan gave or threw away, and its parts, each as often as it was carried out."""
    own = int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
    return own + sum(rows_read(part) for part in node.get("Plans", []))


def read_by(connection: psycopg.Connection, statement: Statement, **given: object) -> int:
    """How many rows the statement reads; what it writes is undone."""
    text = statement.text(postgresql_dialect())
    names = dict.fromkeys(re.findall(r"%\((\w+)\)s", text.sql)) | dict(text.literals) | given
    with connection.transaction(force_rollback=True):
        found = connection.execute(b"explain (analyze, format json) " + text.sql.encode(), names).fetchone()
    assert found is not None
    return rows_read(cast("list[dict[str, Any]]", found[0])[0]["Plan"])


def read_by_plan_for_any_values(connection: psycopg.Connection, statement: Statement, **given: object) -> int:
    """How many rows the statement reads with the plan that is kept where it was prepared."""
    sql = statement.text(postgresql_dialect()).sql
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", sql)))
    text = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", sql)
    values = ", ".join(f"'{given[name]}'" for name in names)
    with connection.transaction(force_rollback=True):
        connection.execute("set local plan_cache_mode = force_generic_plan")
        connection.execute(f"prepare kept as {text}".encode())
        found = connection.execute(f"explain (analyze, format json) execute kept({values})".encode()).fetchone()
        connection.execute("deallocate kept")
    assert found is not None
    return rows_read(cast("list[dict[str, Any]]", found[0])[0]["Plan"])


def test_who_has_orders_due_is_found_by_a_step_for_each(filled: psycopg.Connection) -> None:
    assert max(read_by(filled, statement) for statement in DUE_ORGANISATIONS) < 20 * OWNERS


def test_the_next_order_of_an_organisation_is_found_without_the_others(filled: psycopg.Connection) -> None:
    assert read_by(filled, CLAIM_ORDER, of="org_1", now_ms=NOW_MS, lease_end=NOW_MS, token="lse_1") < 100


def test_the_next_account_to_settle_is_found_by_a_step_for_each_organisation(filled: psycopg.Connection) -> None:
    assert read_by(filled, statement_of(next_due_account), now_ms=NOW_MS, after="org_2") < 20 * OWNERS


def test_what_is_settled_in_one_turn_is_all_that_is_read(filled: psycopg.Connection) -> None:
    given = {"of": "org_2", "account_id": 8101, "now_ms": NOW_MS, "lease_end": NOW_MS, "most": 20, "token": "lse_1"}
    assert read_by(filled, CLAIM_UNKNOWN, **given) < 20 * 10


def test_of_what_was_given_back_only_the_newest_is_read(filled: psycopg.Connection) -> None:
    assert read_by(filled, LIST_GIVEN_BACK, account_id=8101, since=float(MANY - 20)) < 60


@pytest.mark.parametrize("given", [{}, {"status": "succeeded"}])
def test_a_page_of_whoever_has_few_intents_is_read_without_those_of_others_in_a_plan_for_anybody(
    filled: psycopg.Connection, given: dict[str, str]
) -> None:
    whose = {"organisation": "org_small", "above": "cni_", "below": "cni_z", "most": 21, **given}
    assert read_by_plan_for_any_values(filled, intent_page(frozenset(given)), **whose) < 10


class CountedClaim(NamedTuple):
    taken: int
    rows_read: int


def claimed(raw: psycopg.Connection, *, now_ms: int) -> CountedClaim:
    """What a committed claim took, and how many deliveries it read for that."""
    connection = Connection(cast(DriverConnection, raw), postgresql_dialect())
    with raw.transaction():
        batch = claim_deliveries(connection, token="lse_1", now_ms=now_ms, most=100)
        read = raw.execute(ROWS_OF_DELIVERIES.encode()).fetchone()
    assert read is not None
    return CountedClaim(batch.taken, int(read[0]))


def test_a_claim_does_not_read_what_was_delivered_between_the_oldest_and_the_newest_that_wait() -> None:
    now = time.time()
    with required_database(migrated_postgres(divided=True)) as url, psycopg.connect(url, autocommit=True) as raw:
        raw.execute(DELIVERIES.format(start=first_id("dlv_", now)[:14]).encode())
        raw.execute("vacuum analyze")
        claims = [claimed(raw, now_ms=int(now * 1000)) for _ in range(CLAIMS)]
    assert claims[-1].taken == 2 * OWNERS
    assert claims[-1].rows_read < MANY / 4
