"""What is remembered: as plain data, the same for the same seed, and no longer than the real one does."""

from pydantic import TypeAdapter

from simulators.processor.demo_account import make_demo_account
from simulators.processor.state import ProcessorState
from tests.sandbox_payments.processor import DAY, ClockedProcessor

ADAPTER = TypeAdapter(ProcessorState)


def worked(seed: int) -> ClockedProcessor:
    p = ClockedProcessor(seed=seed)
    account = make_demo_account(p.state).id
    p.invoice(account, 500)
    p.v1.coupons.create({"percent_off": 10, "duration": "once"}, {"stripe_account": account, "idempotency_key": "k"})
    return p


def test_a_state_read_back_from_json_is_the_same() -> None:
    state = worked(3).state
    assert ADAPTER.validate_json(ADAPTER.dump_json(state)) == state


def test_the_same_seed_tells_the_same_story_and_another_one_another() -> None:
    one, same, other = worked(3).state, worked(3).state, worked(4).state
    one.answers.clear()
    same.answers.clear()
    strip = {"idempotency_key"}
    assert [{**event, "request": strip} for event in one.events.values()] == [{**event, "request": strip} for event in same.events.values()]
    assert one.platform != other.platform
    assert not set(one.events) & set(other.events)


def test_a_demo_account_has_something_of_everything_and_tells_nobody() -> None:
    p = ClockedProcessor()
    book = p.state.book(make_demo_account(p.state).id)
    assert min(map(len, (book.charges, book.refunds, book.payouts, book.disputes, book.reviews, book.value_lists))) > 0
    assert {row.status for row in book.charges.values()} == {"succeeded", "failed"}
    assert [row.created for row in book.charges.values()] == sorted(row.created for row in book.charges.values())
    assert max(row.created for row in book.charges.values()) <= p.now
    assert p.state.book(p.state.platform).fees
    assert p.state.pending == []


def test_events_are_kept_for_thirty_days() -> None:
    p = ClockedProcessor()
    p.account()
    assert p.state.events and p.state.pending
    p.advance(30 * DAY)
    assert p.state.events == {} and p.state.pending == []


def test_the_books_balance() -> None:
    """What came in less what went out is what is there, for every account and currency."""
    p = worked(5)
    for account in p.state.accounts:
        balance = p.v1.balance.retrieve(None, {"stripe_account": account} if account != p.state.platform else None)
        total = sum(row.amount for row in (*balance.available, *balance.pending))
        rows = p.state.book(account)
        paid = sum(row.amount for row in rows.charges.values() if row.status == "succeeded")
        fees = sum(row.fee for row in rows.txns.values())
        given = sum(row.amount for row in rows.refunds.values() if row.status == "succeeded")
        out = sum(row.amount for row in rows.payouts.values() if row.status not in ("failed", "canceled"))
        disputed = sum(row.amount for row in rows.disputes.values() if row.status in ("needs_response", "under_review", "lost"))
        platform = p.state.book(p.state.platform)
        back = sum(row.amount for row in platform.fee_refunds.values() if platform.fees[row.fee].account == account)
        kept = sum(row.amount - row.amount_refunded for row in rows.fees.values())
        assert total == paid - fees - given - out - disputed + back + kept
