"""What a statement reads does not grow with what is finished: SQLite has no statistics, so each plan is the one of every database."""

import re
import sqlite3
from collections.abc import Generator, Mapping
from importlib import import_module
from pathlib import Path

import pytest

from storage.alerts import ALERTS_OF, DAYS_OF, sweep_alert_days, sweep_quota_alerts
from storage.audit import AUDIT_PAGES, AUDIT_READ_PAGES, AuditPageKind
from storage.cdr_events import FIND_CDR_DIGESTS as FIND_DIGESTS
from storage.cdr_events import FIND_FOLLOWING_PLACE, OLD_CDRS
from storage.cdr_events import REMOVE_CDRS as REMOVE_RECORDS
from storage.change_rows import ROWS_OF_STATE, count_state, newest_unknown_row, rows_of_lines
from storage.change_sets import CLAIM_SET, any_old_plan, any_set_due, list_sets, oldest_ended_set
from storage.claims import sweep_claims
from storage.deliveries import DROP_DELIVERIES, QUEUE_DELIVERY_AGAIN
from storage.delivery_lists import DELIVERIES_AT, heads_of_types, page_of_owner, page_of_type, page_of_undelivered, page_of_untyped
from storage.endpoint_selections import find_selection, list_selections
from storage.engine.sql import Query, Statement, sqlite_dialect
from storage.event_lines import LINE_PLACES, TAGS_OF_EVENT_LINES
from storage.event_log import (
    EVENTS_BEHIND,
    NOTE_SWEPT,
    OLD_LOG_EVENTS,
    PLACE_ROWS,
    READ_ENDS,
    READ_LINE_NUMBERS,
    REMOVE_LOG_EVENTS,
    count_log_retry,
    find_log_event,
    list_unplaced,
    newest_query,
    waits_for_place,
)
from storage.events import LIST_EVENTS_OF_INTENT, LIST_OLD_DELIVERIES, LIST_OLD_EVENTS
from storage.fleet_judgements import LINES_TO_JUDGE, NUMBERED_LINES_TO_JUDGE
from storage.fleet_lines import FLEETS_OF_ICCIDS_DUE, MARK_ICCIDS, MARK_WRITTEN_ICCIDS
from storage.fleet_numbers import lines_with_number
from storage.fleet_readings import NEXT_LINES, NUMBERED_LINES
from storage.fleet_search import count_lacking, fleet_count, named_line_numbers
from storage.fleet_tags import STRAY_TAGS, tags_within
from storage.intents import OLD_INTENTS, intent_page
from storage.invoices import billed_customers, invoice_page, invoices_numbered, list_overdue_invoices
from storage.issuance_lists import ISSUANCES_OF_ICCIDS, NEWEST_OF_ACCOUNT, NEWEST_OF_STATE, NEWEST_OF_TAG
from storage.key_retention import REMOVE_ISSUANCES
from storage.key_retention import REMOVE_STORED_ANSWERS as REMOVE_CLAIMS
from storage.line_tags import COUNT_TAGS, DELETE_TAGS_OF_LINES, FULL_LINES, TAGS_OF_LINES
from storage.mail_notices import DUE_NOTICES, END_NOTICES, last_digest_day, sweep_notices
from storage.mcp_subscriptions import EXPIRED_SUBSCRIPTIONS, find_proven_callback
from storage.order_queue import CLAIM_ORDER, DUE_ORGANISATIONS, mark_refund_failed, mark_refund_made, mark_refund_never_made
from storage.order_steps import MARK_MAIL_SENT, STEPS_OF_ORDERS
from storage.orders import LIST_ORDERS_OF_BUYER, shops_of_buyer
from storage.orphans import MARK_LOST_CLAIMS
from storage.outbox import FIRST_UNDELIVERED
from storage.reconciliation import CLAIM_UNKNOWN, LIST_GIVEN_BACK, next_due_account
from tests.databases import migrated_sqlite
from tests.storage.test_all_statements import STORAGE_MODULES, statement_of, statements

GROWING = {
    *(
        "audit",
        "audit_read",
        "call_record_digest",
        "cdr_event",
        "claim",
        "country_entry",
        "delivery",
        "delivery_attempt",
        "event",
        "intelligence_report",
        "intent",
        "intent_label",
    ),
    *("change_set", "change_row", "order_step"),
    *("event_log", "line_event_number", "mail_notice", "alert_day"),
    *("invoice", "invoice_line", "issuance", "payment_record", "placed_package", "storefront_order"),
}
WHOLE = {
    "event_log OLD_LOG_EVENTS": "no more than the first rows in the order of writing, as many as are swept at once",
    "claims FORGET_CLAIM": "when a simulated network begins anew",
    "reconciliation newest_issuances": "a person lists the ledger at the command line",
    "rekey OUTERMOST_QUERIES": "secrets are sealed anew, in steps",
}
"""Statements that read a growing table from one end to the other, and when."""
OF_POSTGRES = re.compile(r"pg_|convert_to|^lock table|AS \n\(INSERT")
SCAN = re.compile(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?")
DIALECT = sqlite_dialect()


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Generator[sqlite3.Connection]:
    folder: Path = tmp_path_factory.mktemp("plans")
    connection = sqlite3.connect(migrated_sqlite(folder).removeprefix("sqlite:///"))
    yield connection
    connection.close()


def plan(raw: sqlite3.Connection, statement: Statement) -> list[str]:
    """How the statement finds its rows."""
    text = statement.text(DIALECT)
    given = dict.fromkeys(re.findall(r":(\w+)", text.sql), 1) | dict(text.literals)
    return [row[3] for row in raw.execute(f"explain query plan {text.sql}", given)]


def partial(raw: sqlite3.Connection) -> set[str]:
    return {name for (name,) in raw.execute("select name from sqlite_master where type = 'index' and sql like '% where %'")}


def test_only_these_read_the_whole_of_what_grows(raw: sqlite3.Connection) -> None:
    some, found = partial(raw), set[str]()
    tables = {name for (name,) in raw.execute("select name from sqlite_master where type = 'table'")}
    assert tables >= GROWING
    for module in STORAGE_MODULES:
        for name, held in vars(import_module(module)).items():
            for statement in statements(held):
                if OF_POSTGRES.search(statement.text(DIALECT).sql):
                    continue
                scans = [match.groups() for step in plan(raw, statement) if (match := SCAN.match(step))]
                if any(table in GROWING and index not in some for table, index in scans):
                    found.add(f"{module.removeprefix('storage.')} {name}")
    assert found == WHOLE.keys()


def test_what_has_ended_is_found_by_when_it_ended(raw: sqlite3.Connection) -> None:
    assert "SEARCH claim USING INDEX claim_expires (expires_at<?)" in plan(raw, statement_of(sweep_claims))
    assert not [step for step in plan(raw, statement_of(sweep_claims)) if "claim_state" in step]


def test_the_next_order_of_an_organisation_is_found_among_those_that_are_due(raw: sqlite3.Connection) -> None:
    for index, statement in zip(("storefront_order_due_paid", "storefront_order_due_unpaid"), DUE_ORGANISATIONS, strict=True):
        assert f"SEARCH storefront_order USING INDEX {index} (organisation=? AND due_ms>? AND due_ms<?)" in plan(raw, CLAIM_ORDER)
        assert f"SEARCH following USING INDEX {index} (organisation>?)" in plan(raw, statement)
        assert f"SEARCH oldest USING INDEX {index} (organisation=? AND due_ms>?)" in plan(raw, statement)


def test_what_is_to_be_settled_is_found_by_organisation_and_what_was_given_back_by_when(raw: sqlite3.Connection) -> None:
    assert "SEARCH following USING INDEX issuance_unknown_of (organisation>?)" in plan(raw, statement_of(next_due_account))
    assert "SEARCH issuance USING INDEX issuance_unknown_of (organisation=? AND account_id=? AND due_ms<?)" in plan(raw, CLAIM_UNKNOWN)
    assert "SEARCH issuance USING INDEX issuance_account (account_id=? AND state=? AND updated>?)" in plan(raw, LIST_GIVEN_BACK)


def test_a_page_of_the_ledger_is_read_from_the_beginning_of_an_index(raw: sqlite3.Connection) -> None:
    of_state = "SEARCH issuance USING INDEX issuance_of_state (state=? AND organisation=? AND dispatched>? AND dispatched<?)"
    assert plan(raw, NEWEST_OF_STATE) == [of_state]
    of_account = "issuance_of_account (account_id=? AND organisation=? AND state=? AND dispatched>? AND dispatched<?)"
    assert plan(raw, NEWEST_OF_ACCOUNT) == [f"SEARCH issuance USING INDEX {of_account}"]
    for statement in (ISSUANCES_OF_ICCIDS, NEWEST_OF_TAG):
        assert "SEARCH issuance USING INDEX issuance_of_iccid (organisation=? AND iccid=?)" in plan(raw, statement)
    (of_claim,) = (step for step in plan(raw, MARK_LOST_CLAIMS) if " issuance " in step)
    assert of_claim == "SEARCH issuance USING INDEX issuance_claim (organisation=? AND claim_key=?)"


@pytest.mark.parametrize(
    ("statement", "found_by"),
    [
        (fleet_count(frozenset({"tag"})), "COVERING INDEX line_tag_lines (organisation=? AND tag=?)"),
        (COUNT_TAGS, "COVERING INDEX line_tag_lines (organisation=? AND tag>?)"),
        (TAGS_OF_LINES, "PRIMARY KEY (organisation=? AND iccid=?)"),
        (DELETE_TAGS_OF_LINES, "PRIMARY KEY (organisation=? AND iccid=?)"),
        (FULL_LINES, "PRIMARY KEY (organisation=? AND iccid=?)"),
    ],
)
def test_tags_are_looked_up_by_tag_or_line(raw: sqlite3.Connection, statement: Statement, found_by: str) -> None:
    assert [step for step in plan(raw, statement) if "line_tag USING" in step] == [f"SEARCH line_tag USING {found_by}"]


COUNTED = {name: held for name, held in vars(import_module("storage.backlog")).items() if isinstance(held, Query) and name != "LOCK_WAITS"}


@pytest.mark.parametrize("name", COUNTED)
def test_what_waits_or_has_failed_is_counted_by_an_index_and_up_to_a_limit(raw: sqlite3.Connection, name: str) -> None:
    text = COUNTED[name].text(DIALECT)
    reads = [
        step
        for step in plan(raw, COUNTED[name])
        if re.search(r"(SEARCH|SCAN) (delivery|issuance|mail|storefront_order|intelligence)", step)
    ]
    assert reads and all(" INDEX " in step for step in reads)
    assert len(re.findall(r"\blimit\b", text.sql, re.IGNORECASE)) == len(reads)


@pytest.mark.parametrize(
    ("statement", "found_by"),
    [
        (intent_page(frozenset()), "intent USING INDEX intent_organisation (organisation=? AND id>? AND id<?)"),
        (intent_page(frozenset({"status"})), "intent USING INDEX intent_of_status (organisation=? AND status=? AND id>? AND id<?)"),
        (billed_customers(frozenset()), "invoice USING INDEX invoice_organisation (organisation=? AND id>? AND id<?)"),
        (invoice_page(frozenset()), "invoice USING INDEX invoice_organisation (organisation=? AND id>? AND id<?)"),
        (invoice_page(frozenset({"status"})), "invoice USING INDEX invoice_of_status (organisation=? AND status=? AND id>? AND id<?)"),
        (invoice_page(frozenset({"period"})), "invoice USING INDEX invoice_of_period (organisation=? AND period=? AND id>? AND id<?)"),
        (
            invoice_page(frozenset({"period", "status"})),
            "invoice USING INDEX invoice_of_period (organisation=? AND period=? AND id>? AND id<?)",
        ),
    ],
)
def test_a_filtered_page_of_intents_or_invoices_is_read_from_the_beginning_of_an_index(
    raw: sqlite3.Connection, statement: Statement, found_by: str
) -> None:
    assert plan(raw, statement) == [f"SEARCH {found_by}"]


@pytest.mark.parametrize("names", [{"value"}, {"value", "status"}, {"key", "value"}, {"key", "value", "status"}])
def test_a_page_of_labelled_intents_is_read_from_the_beginning_of_their_labels(raw: sqlite3.Connection, names: set[str]) -> None:
    labels = "SEARCH intent_label USING PRIMARY KEY (organisation=? AND value=? AND intent>? AND intent<?)"
    steps = [step for step in plan(raw, intent_page(frozenset(names))) if " other " not in step and "SUBQUERY" not in step]
    assert steps == [labels, "SEARCH intent USING INDEX sqlite_autoindex_intent_1 (id=?)"]


def test_the_events_of_an_intent_are_found_by_the_intent(raw: sqlite3.Connection) -> None:
    assert plan(raw, LIST_EVENTS_OF_INTENT) == ["SEARCH event USING INDEX event_intent (intent=? AND id<?)"]


@pytest.mark.parametrize(
    ("pages", "filters", "rare", "index"),
    [
        (AUDIT_PAGES, "operation", False, "audit_operation (organisation=? AND operation=? AND at>? AND at<?)"),
        (AUDIT_PAGES, "principal", False, "audit_principal (organisation=? AND principal=? AND at>? AND at<?)"),
        (AUDIT_PAGES, "key_id", False, "audit_key (organisation=? AND key_id=? AND at>? AND at<?)"),
        (AUDIT_READ_PAGES, "key_id", False, "audit_read_key (organisation=? AND key=? AND id>? AND id<?)"),
        (AUDIT_READ_PAGES, "operation", False, "audit_read_operation (organisation=? AND operation=? AND id>? AND id<?)"),
        (AUDIT_PAGES, "outcome", True, "audit_outcome (organisation=? AND outcome=? AND at>? AND at<?)"),
        (AUDIT_READ_PAGES, "outcome", True, "audit_read_outcome (organisation=? AND outcome=? AND id>? AND id<?)"),
        (AUDIT_READ_PAGES, "outcome principal", True, "audit_read_outcome (organisation=? AND outcome=? AND id>? AND id<?)"),
    ],
)
def test_a_filter_of_the_audit_log_is_looked_up(
    raw: sqlite3.Connection, pages: Mapping[AuditPageKind, Statement], filters: str, rare: bool, index: str
) -> None:
    assert plan(raw, pages[AuditPageKind(frozenset(filters.split()), rare)])[0].endswith(f"USING INDEX {index}")


def test_a_record_is_looked_up_by_its_organisation_or_shop(raw: sqlite3.Connection) -> None:
    assert "SEARCH storefront_order USING INDEX storefront_order_buyer (storefront=? AND email=?)" in plan(
        raw, statement_of(shops_of_buyer)
    )
    assert plan(raw, statement_of(invoices_numbered)) == ["SEARCH invoice USING INDEX invoice_organisation (organisation=?)"]


def test_the_steps_of_an_order_are_found_by_its_number_and_a_mail_s_by_the_mail(raw: sqlite3.Connection) -> None:
    assert "SEARCH order_step USING PRIMARY KEY (storefront_order=?)" in plan(raw, STEPS_OF_ORDERS)
    assert plan(raw, MARK_MAIL_SENT) == ["SEARCH order_step USING COVERING INDEX order_step_mail (mail=?)"]


def test_the_orders_of_a_buyer_are_found_by_the_buyer(raw: sqlite3.Connection) -> None:
    assert plan(raw, LIST_ORDERS_OF_BUYER)[0] == "SEARCH storefront_order USING INDEX storefront_order_buyer (storefront=? AND email=?)"


def test_what_is_old_is_found_by_its_age(raw: sqlite3.Connection) -> None:
    found = {
        "claim_lasting (claimed<?)": REMOVE_CLAIMS,
        "issuance_ended (updated<?)": REMOVE_ISSUANCES,
        "intent_removable (id<?)": OLD_INTENTS,
        "sqlite_autoindex_event_1 (id<?)": LIST_OLD_EVENTS,
        "sqlite_autoindex_delivery_1 (id<?)": LIST_OLD_DELIVERIES,
    }
    assert [index for index, statement in found.items() if not any(f"INDEX {index}" in step for step in plan(raw, statement))] == []


def test_a_step_through_call_records_goes_on_behind_the_last_one_and_ids_are_looked_up(raw: sqlite3.Connection) -> None:
    behind = "SEARCH cdr_event USING PRIMARY KEY ((organisation,event)>(?,?))"
    assert [step for step in plan(raw, FIND_FOLLOWING_PLACE) if "cdr_event" in step] == [behind]
    assert [step for step in plan(raw, OLD_CDRS) if "cdr_event" in step] == [behind]
    assert "SEARCH cdr_event USING PRIMARY KEY (organisation=? AND event=?)" in plan(raw, REMOVE_RECORDS)
    assert [step for step in plan(raw, FIND_DIGESTS) if "call_record_digest" in step] == [
        "SEARCH call_record_digest USING PRIMARY KEY (digest=?)"
    ]


@pytest.mark.parametrize(
    "statement", [statement_of(mark_refund_made), statement_of(mark_refund_failed), statement_of(mark_refund_never_made)]
)
def test_what_a_processor_says_of_a_refund_is_looked_up_among_the_failed_orders(raw: sqlite3.Connection, statement: Statement) -> None:
    assert plan(raw, statement) == ["SEARCH storefront_order USING INDEX storefront_order_status (status=?)"]


@pytest.mark.parametrize(
    ("statement", "found_by"),
    [
        (MARK_ICCIDS, "INDEX fleet_line_iccid (iccid=?)"),
        (MARK_WRITTEN_ICCIDS, "INDEX fleet_line_iccid (iccid=?)"),
        (FLEETS_OF_ICCIDS_DUE, "INDEX fleet_line_iccid (iccid=?)"),
        (NUMBERED_LINES, "PRIMARY KEY (fleet=? AND subscriber_id=?)"),
        (NUMBERED_LINES_TO_JUDGE, "PRIMARY KEY (fleet=? AND subscriber_id=?)"),
        (NEXT_LINES, "INDEX fleet_line_work (fleet=? AND rank=? AND due>? AND due<?)"),
        (LINES_TO_JUDGE, "INDEX fleet_line_judge (fleet=? AND judge_due>? AND judge_due<?)"),
        (count_lacking(frozenset(), for_days=True), "INDEX fleet_line_work (fleet=? AND rank=? AND due>?)"),
        (fleet_count(frozenset({"tag"})), "PRIMARY KEY (fleet=? AND subscriber_id=?)"),
        (fleet_count(frozenset({"tags"})), "PRIMARY KEY (fleet=? AND subscriber_id=?)"),
        (lines_with_number(frozenset()), "PRIMARY KEY (fleet=? AND subscriber_id>?)"),
        (named_line_numbers(frozenset({"tags"})), "INDEX fleet_line_iccid (iccid=?)"),
        (tags_within(frozenset({"tags"})), "PRIMARY KEY (fleet=? AND subscriber_id=?)"),
        (STRAY_TAGS, "INDEX fleet_line_iccid (iccid=? AND fleet=?)"),
    ],
)
def test_lines_of_a_fleet_are_looked_up_by_what_is_asked_of_them(raw: sqlite3.Connection, statement: Statement, found_by: str) -> None:
    assert [step for step in plan(raw, statement) if step.startswith("SEARCH fleet_line USING")] == [f"SEARCH fleet_line USING {found_by}"]


@pytest.mark.parametrize(
    ("statement", "found_by"),
    [
        (statement_of(any_set_due), "change_set_work (state=? AND due<?)"),
        (CLAIM_SET, "change_set_work (state=? AND due<?)"),
        (statement_of(any_old_plan), "change_set_work (state=?)"),
        (statement_of(list_sets), "change_set_organisation (organisation=? AND id<?)"),
        (statement_of(oldest_ended_set), "change_set_age (created<?)"),
        (ROWS_OF_STATE["planned"], "change_row_state (change_set=? AND state=? AND number>?)"),
        (statement_of(rows_of_lines), "change_row_line (change_set=? AND iccid=?)"),
        (statement_of(count_state), "change_row_state (change_set=? AND state=?)"),
        (statement_of(newest_unknown_row), "change_row_state (change_set=? AND state=?)"),
    ],
    ids=lambda each: each.partition(" ")[0] if isinstance(each, str) else "",
)
def test_change_sets_and_their_rows_are_looked_up(raw: sqlite3.Connection, statement: Statement, found_by: str) -> None:
    steps = plan(raw, statement)
    assert any(step.startswith("SEARCH change_") and found_by in step for step in steps), steps
    assert not [step for step in steps if step.startswith("SCAN change_")], steps


@pytest.mark.parametrize(
    ("statement", "found_by"),
    [
        (statement_of(waits_for_place), "SEARCH event_log USING INTEGER PRIMARY KEY (rowid>?)"),
        (statement_of(list_unplaced), "SEARCH event_log USING INTEGER PRIMARY KEY (rowid>?)"),
        (PLACE_ROWS, "SEARCH event_log USING INTEGER PRIMARY KEY (rowid=?)"),
        (READ_ENDS, "SEARCH event_log_end USING INDEX sqlite_autoindex_event_log_end_1 (organisation=?)"),
        (READ_LINE_NUMBERS, "SEARCH line_event_number USING PRIMARY KEY (organisation=? AND line=?)"),
        (EVENTS_BEHIND, "SEARCH event_log USING INDEX event_log_position (organisation=? AND position>? AND position<?)"),
        (newest_query(2), "SEARCH event_log USING INDEX event_log_type (organisation=? AND type=? AND id<?)"),
        (statement_of(find_log_event), "SEARCH event_log USING INDEX event_log_id (id=?)"),
        (statement_of(count_log_retry), "SEARCH event_log USING INDEX event_log_id (id=?)"),
        (OLD_LOG_EVENTS, "SCAN event_log"),  # of the first rows alone, in the order of writing
        (REMOVE_LOG_EVENTS, "SEARCH event_log USING INTEGER PRIMARY KEY (rowid=?)"),
        (NOTE_SWEPT, "SEARCH event_log_end USING INDEX sqlite_autoindex_event_log_end_1 (organisation=?)"),
        (LINE_PLACES, "SEARCH fleet_line USING INDEX fleet_line_iccid (iccid=?)"),
        (TAGS_OF_EVENT_LINES, "SEARCH line_tag USING PRIMARY KEY (organisation=? AND iccid=?)"),
        (statement_of(list_selections), "SEARCH endpoint_selection USING INDEX endpoint_selection_organisation (organisation=?)"),
        (statement_of(find_selection), "SEARCH endpoint_selection USING INDEX sqlite_autoindex_endpoint_selection_1 (endpoint=?)"),
        (EXPIRED_SUBSCRIPTIONS, "SEARCH mcp_subscription USING INDEX mcp_subscription_expires (expires<?)"),
        (statement_of(find_proven_callback), "SEARCH mcp_subscription USING INDEX mcp_subscription_id (organisation=?)"),
        (statement_of(list_overdue_invoices), "SEARCH invoice USING INDEX invoice_due (due_at>? AND due_at<?)"),
        (DUE_NOTICES, "SEARCH mail_notice USING INDEX mail_notice_waiting (organisation=? AND person=? AND due_ms<?)"),
        (END_NOTICES, "SEARCH mail_notice USING INDEX sqlite_autoindex_mail_notice_1 (person=? AND event=?)"),
        (statement_of(last_digest_day), "SEARCH mail_notice USING INDEX mail_notice_digest (organisation=? AND person=?)"),
        (statement_of(sweep_notices), "SEARCH mail_notice USING INDEX mail_notice_ended (ended_ms<?)"),
        (ALERTS_OF, "SEARCH alert USING PRIMARY KEY (organisation=?)"),
        (DAYS_OF, "SEARCH alert_day USING PRIMARY KEY (organisation=?)"),
        (statement_of(sweep_alert_days), "SEARCH alert_day USING COVERING INDEX alert_day_ended (ended<?)"),
        (statement_of(sweep_quota_alerts), "SEARCH alert USING COVERING INDEX alert_opened (kind=? AND opened<?)"),
    ],
    ids=lambda each: each.rpartition(" USING ")[0] if isinstance(each, str) else "",
)
def test_what_is_told_is_looked_up_by_what_is_asked_of_it(raw: sqlite3.Connection, statement: Statement, found_by: str) -> None:
    assert found_by in plan(raw, statement)


def test_a_page_of_deliveries_is_read_from_the_beginning_of_an_index(raw: sqlite3.Connection) -> None:
    within = "event_id>? AND event_id<?)"
    for owner, name in (("organisation", "organisation"), ("endpoint_id", "endpoint")):
        by_type = "delivery_of_type" if name == "organisation" else "delivery_of_endpoint_type"
        of_type = f"INDEX {by_type} ({owner}=? AND type=? AND {within}"
        endpoint = name == "endpoint"
        assert plan(raw, page_of_owner(endpoint=endpoint)) == [f"SEARCH delivery USING INDEX delivery_of_{name} ({owner}=? AND {within}"]
        assert plan(raw, page_of_type(endpoint=endpoint)) == [f"SEARCH delivery USING {of_type}"]
        assert f"SEARCH delivery USING COVERING {of_type}" in plan(raw, heads_of_types(endpoint=endpoint))
        assert f"SEARCH delivery USING {of_type}" in plan(raw, page_of_untyped(endpoint=endpoint))
        for typed in (False, True):
            steps = plan(raw, page_of_undelivered(endpoint=endpoint, typed=typed))
            found = [step for step in steps if "delivery_undelivered" in step]
            assert found == [f"SEARCH delivery USING COVERING INDEX delivery_undelivered (organisation=? AND state=? AND {within}"], steps
            assert not any("TEMP B-TREE" in step for step in steps)
    assert plan(raw, DELIVERIES_AT)[0] == "SEARCH delivery USING INDEX sqlite_autoindex_delivery_1 (id=?)"
    assert plan(raw, QUEUE_DELIVERY_AGAIN)[0] == "SEARCH delivery USING INDEX sqlite_autoindex_delivery_2 (event_id=? AND endpoint_id=?)"


def test_what_an_endpoint_is_still_to_get_is_found_among_what_waits_and_what_is_under_way(raw: sqlite3.Connection) -> None:
    found = [step for step in plan(raw, FIRST_UNDELIVERED) if " delivery " in step]
    assert found == ["SEARCH delivery USING INDEX delivery_waiting (endpoint_id=?)", "SCAN delivery USING INDEX delivery_leased"]
    assert plan(raw, DROP_DELIVERIES[1]) == ["SCAN delivery USING INDEX delivery_leased"]
