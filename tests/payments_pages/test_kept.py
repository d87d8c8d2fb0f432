"""What the processor remembers over a restart, and what it does about a file that cannot be read."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from clients.payments.port import Processor
from clients.payments.records import NewCheckout
from registry.ids import former_order_number
from simulators.processor.simulated_processor import SimulatedProcessor
from tests.payments_pages.shop import Post
from tests.world import HOST, SettableClock
from transports.payments import SIMULATED_PROCESSOR_KEY, simulated_processor


def opened(path: Path, said: list[str] | None = None) -> SimulatedProcessor:
    """A processor that remembers in a file."""
    return SimulatedProcessor(
        wall=SettableClock().now,
        pages_url=f"https://{HOST}/sandbox/payments",
        key=SIMULATED_PROCESSOR_KEY,
        webhook_secret="whsec_c2VjcmV0c2VjcmV0",
        webhook_url=f"http://{HOST}/v1/operator-billing/payments-webhook",
        state_file=path,
        report=[].append if said is None else said.append,
    )


@asynccontextmanager
async def asked(sandbox: SimulatedProcessor) -> AsyncGenerator[str]:
    processor = simulated_processor(sandbox)
    account = (await processor.create_account(key="one", email=None, country="US", metadata={"org": "1"})).id
    await sandbox.control("POST", f"accounts/{account}", {"do": "enable"})
    await sandbox.control("POST", "charges", {"account": account, "amount": 700, "currency": "eur", "fee": 7})
    yield account
    await processor.aclose()


async def test_a_processor_that_starts_again_knows_its_accounts_its_money_and_what_it_has_not_told(tmp_path: Path) -> None:
    path, post = tmp_path / "state.json", Post()
    first = opened(path)
    assert not first.begun and not path.exists()
    async with asked(first) as account:
        assert path.stat().st_mode & 0o777 == 0o600
        second = opened(path)
        assert second.begun
        processor = simulated_processor(second)
        assert dict((await processor.find_account(account)).metadata) == {"org": "1"}
        [charge] = (await processor.list_charges(account, limit=10)).data
        assert (charge.amount, charge.currency) == (700, "EUR")
        repeated = await processor.create_account(key="one", email=None, country="US", metadata={"org": "1"})
        assert repeated.id == account
        assert await second.deliver(post) == [200] * 5
        assert await opened(path).deliver(post) == []
        await processor.aclose()


async def test_processes_that_share_the_file_see_each_others_changes(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    one, other = opened(path), opened(path)
    async with asked(one) as account:
        paid = {"account": account, "amount": 100, "currency": "usd"}
        async with anyio.create_task_group() as tasks:
            for sandbox in (one, other) * 10:
                tasks.start_soon(sandbox.control, "POST", "charges", paid)
        for sandbox in (one, other, opened(path)):
            async with sandbox.turn(writes=False) as state:
                assert len(state.book(account).charges) == 21


async def test_a_change_that_breaks_off_is_none(tmp_path: Path) -> None:
    sandbox = opened(tmp_path / "state.json")
    async with asked(sandbox) as account:
        with pytest.raises(KeyboardInterrupt):
            async with sandbox.turn(writes=True) as state:
                state.accounts[account].email = "half@example.com"
                raise KeyboardInterrupt
        async with sandbox.turn(writes=False) as state:
            assert state.accounts[account].email is None


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b'{"seed": "x"}', b"\xff\xfe", b'{"accounts": {"a": 1}}'])
async def test_a_file_that_cannot_be_read_is_set_aside_and_said(tmp_path: Path, content: bytes) -> None:
    path, said = tmp_path / "state.json", list[str]()
    path.write_bytes(content)
    sandbox = opened(path, said)
    async with asked(sandbox) as account:
        assert account
    [text] = said
    assert str(path) in text and "begins anew" in text
    assert (tmp_path / "state.unreadable.json").read_bytes() == content
    assert opened(path).begun


async def test_a_file_of_somebody_elses_is_said_too(tmp_path: Path) -> None:
    path, said = tmp_path / "state.json", list[str]()
    path.mkdir()
    async with asked(opened(path, said)):
        assert "it cannot be read" in said[0]
    assert path.is_file()


async def test_a_file_whose_time_is_no_time_is_put_aside(tmp_path: Path) -> None:
    path, said = tmp_path / "state.json", list[str]()
    path.write_text('{"at": 1e400}')
    async with opened(path, said).turn(writes=False) as state:
        assert state.at == SettableClock().now()
    assert len(said) == 1


async def test_a_file_of_release_1_0_is_rid_of_what_opens_orders_when_it_is_read_and_knows_what_was_asked_before(tmp_path: Path) -> None:
    path, token = tmp_path / "state.json", "ord_" + "7m2q9k4xb1zdp" * 2
    number, there = former_order_number(token), "https://reseller.test/shop/fjord"
    async with asked(opened(path)) as account:
        processor = simulated_processor(first := opened(path))
        page = NewCheckout(number, "Nordic", 900, "EUR", 9, f"{there}/orders/{number}", there, metadata={"order": number})
        made = await processor.create_checkout(account, page)
        [charge] = (await processor.list_charges(account, limit=10)).data
        given = await refunded(processor, account, charge.id, f"order-refund:{number}")
        path.write_text(path.read_text().replace(number, token))
        assert len(re.findall(token, path.read_text())) > 5
        again = opened(path)
        async with again.turn(writes=False) as state:
            assert state.book(account).sessions[made.id].metadata == {"order": number}
        assert token not in path.read_text() and number in path.read_text()
        later = simulated_processor(again)
        assert await refunded(later, account, charge.id, f"order-refund:{token}") == given
        assert len(again.state.book(account).refunds) == 1
        assert first.begun
        await processor.aclose()
        await later.aclose()


async def refunded(processor: Processor, account: str, charge: str, key: str) -> str:
    """The id of the refund that is asked for under a key."""
    made = await processor.refund(account, charge=charge, amount=700, reason=None, key=key, metadata={"attempt": "att_1"})
    return made.id
