"""An admin says what became of an order or a top-up that needs review: after a day, not against evidence, and once."""

from dataclasses import dataclass

import anyio
import httpx
import pytest

from registry.caller import Role, Tier
from storage.journal import StoreJournal
from storage.order_queue import review_order
from tests.contract.stage import StubProvider
from tests.fulfilment.floor import BUYER, Floor
from tests.fulfilment.mortal import Killed, Mortal
from tests.network_facts import ACCOUNT, HOUR
from tests.registry.ledgers import audited_of
from tests.stage import without_request_id

DAY = 24 * HOUR
LATE = DAY + 60


@dataclass(slots=True)
class OrderReview:
    """The admin of the shop's organisation, signed in."""

    floor: Floor
    session: str
    person: str

    async def ask(
        self, number: str, outcome: str, iccid: str | None = None, *, session: str | None = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        body = {"outcome": outcome, "reason": "Ada looked at the account", **({} if iccid is None else {"iccid": iccid})}
        async with self.floor.shop.world.client(session or self.session) as http:
            return await http.post(f"/v1/storefronts/orders/{number}/settlement", json=body, headers=headers or {})

    async def settle(
        self, number: str, outcome: str, iccid: str | None = None, *, session: str | None = None, **headers: str
    ) -> httpx.Response:
        asked = await self.ask(number, outcome, iccid, session=session, headers=headers)
        if asked.status_code != 202:
            return asked
        token = {"X-Confirm-Token": asked.json()["confirm_token"]}
        return await self.ask(number, outcome, iccid, session=session, headers={**headers, **token})

    async def join(self, subject: str, organisation: str, role: Role = Role.ADMIN) -> str:
        """The session of one more person."""
        world = self.floor.shop.world
        await world.join(await world.person(subject=subject), organisation, role)
        return f"session.{subject}.{organisation}"

    async def lost(self, *, drawn: bool, seconds: float = LATE) -> tuple[str, str | None]:
        """A paid order whose draw had no answer so long ago; the ICCID that it took."""
        floor = self.floor
        order, before = await floor.paid(), await self.taken()
        floor.strike(drop_after=drawn, drop_before=not drawn)
        await floor.work()
        assert (await floor.row(order)).status == "needs_review"
        floor.shop.world.clock.advance(seconds)
        return order, next(iter(await self.taken() - before), None)

    async def lost_top_up(self, *, added: bool) -> str:
        floor = self.floor
        top_up = await floor.shop.top_up(await floor.shop.buy())
        floor.strike(drop_after=added, drop_before=not added)
        await floor.work()
        assert (await floor.row(top_up)).status == "needs_review"
        floor.shop.world.clock.advance(LATE)
        return top_up

    async def taken(self) -> set[str]:
        network = await self.floor.shop.world.network()
        return {line.iccid for line in network.lines_of(ACCOUNT) if (line.sim.affected_at or 0) >= self.floor.began}

    async def settlements(self) -> list[tuple[str, str, str]]:
        world = self.floor.shop.world
        rows = await world.store.read(audited_of, organisation=self.floor.shop.me.organisation)
        return [(row.operation, row.principal, row.outcome) for row in rows if row.outcome.startswith(("settled_", "reconciled_"))]


async def opened(floor: Floor) -> OrderReview:
    world, organisation = floor.shop.world, floor.shop.me.organisation
    world.pipeline.sessions = StubProvider()
    person = await world.person(subject="sub_ada")
    await world.join(person, organisation)
    return OrderReview(floor, f"session.sub_ada.{organisation}", person)


@pytest.fixture
async def review(floor: Floor) -> OrderReview:
    return await opened(floor)


@pytest.fixture
async def review_on_both(on_both: Floor) -> OrderReview:
    return await opened(on_both)


@pytest.mark.long
async def test_an_order_that_an_admin_settles_as_delivered_gives_its_buyer_the_esim(review: OrderReview) -> None:
    order, iccid = await review.lost(drawn=True)
    answer = await review.settle(order, "delivered", iccid)
    assert (answer.status_code, answer.json()) == (
        200,
        {"object": "storefront.settlement", "order": order, "top_up": None, "status": "ready", "refund": None},
    )
    row = await review.floor.row(order)
    assert (row.status, row.iccid, await review.floor.told(), await review.floor.is_settled_well(order)) == ("ready", iccid, [iccid], True)
    assert await review.settlements() == [("fulfil_storefront_order", review.person, "settled_issued")]
    ledger = await review.floor.ledger(order)
    assert ledger is not None and ledger.note == f"settled by {review.person}: Ada looked at the account"
    assert len(await review.floor.letters(BUYER)) == 1


@pytest.mark.long
async def test_an_order_that_drew_nothing_fails_and_its_money_goes_back(review: OrderReview) -> None:
    order, _ = await review.lost(drawn=False)
    answer = await review.settle(order, "failed")
    assert (answer.json()["status"], answer.json()["refund"]) == ("failed", "pending"), answer.text
    await review.floor.work(2, every=1)
    assert (await review.floor.end(order), review.floor.refunds()) == (("failed", "issuance_failed", "done"), [1000])
    again = await review.settle(order, "failed")
    assert (again.status_code, again.json()["code"]) == (409, "order_not_settled")


async def test_an_order_without_a_draw_is_given_back(review: OrderReview) -> None:
    order, world = await review.floor.paid(), review.floor.shop.world
    await world.store.write(review_order, order=order, code="OUTCOME_UNKNOWN", now=world.clock.now())
    early = await review.settle(order, "refund")
    assert (early.status_code, early.json()["code"]) == (409, "settlement_too_early")
    assert early.json()["hint"].endswith(f"reseller storefront settle {order}")
    world.clock.advance(LATE)
    wrong = await review.settle(order, "failed")
    assert (wrong.status_code, wrong.json()["hint"]) == (409, "Say refund: nothing was sent for it, and what was paid goes back")
    assert (await review.settle(order, "refund")).json()["status"] == "failed"
    await review.floor.work(2, every=1)
    assert await review.floor.end(order) == ("failed", "settled_by_operator", "done")
    assert await review.settlements() == [("settle_storefront_order", review.person, "settled_refund")]


@pytest.mark.long
async def test_a_top_up_is_settled_as_its_line_shows(review: OrderReview) -> None:
    there, gone = await review.lost_top_up(added=True), await review.lost_top_up(added=False)
    for top_up, wrong in ((there, "refund"), (gone, "delivered")):
        against = await review.settle(top_up, wrong)
        assert (against.status_code, against.json()["code"]) == (409, "settlement_against_evidence"), against.text
        assert against.json()["hint"].endswith(f"reseller storefront settle {top_up}")
    added = await review.settle(there, "delivered")
    assert (added.json()["top_up"], added.json()["status"]) == (there, "ready"), added.text
    assert (await review.settle(gone, "refund")).json()["refund"] == "pending"
    await review.floor.work(2, every=1)
    assert [await review.floor.end(top_up) for top_up in (there, gone)] == [
        ("ready", None, None),
        ("failed", "settled_by_operator", "done"),
    ]


@pytest.mark.long
async def test_an_order_is_not_settled_early_or_against_evidence(review: OrderReview) -> None:
    order, iccid = await review.lost(drawn=True, seconds=HOUR)
    early = await review.settle(order, "delivered", iccid)
    assert (early.status_code, early.json()["code"]) == (409, "settlement_too_early")
    assert f"reseller issuance settle {order} --org {review.floor.shop.me.organisation}" in early.json()["hint"]
    review.floor.shop.world.clock.advance(DAY)
    against = await review.settle(order, "failed")
    assert (against.status_code, against.json()["code"]) == (409, "settlement_against_evidence")
    assert (await review.floor.row(order)).status == "needs_review"


@pytest.mark.cases
@pytest.mark.parametrize(
    ("outcome", "iccid", "status", "param"),
    [
        ("delivered", None, 400, "iccid"),
        ("failed", "8988303700009999999", 400, "iccid"),
        ("refund", None, 409, "outcome"),
        ("lost", None, 400, "outcome"),
    ],
)
async def test_what_cannot_be_said_of_an_order_is_refused(
    review: OrderReview, outcome: str, iccid: str | None, status: int, param: str
) -> None:
    order, _ = await review.lost(drawn=False)
    answer = await review.settle(order, outcome, iccid)
    assert (answer.status_code, answer.json()["param"]) == (status, param), answer.text


async def test_only_an_admin_of_the_shops_organisation_settles_its_orders(review: OrderReview) -> None:
    order, _ = await review.lost(drawn=False)
    world, me = review.floor.shop.world, review.floor.shop.me
    assert (await review.settle(order, "failed", session=me.secret)).status_code == 401
    member = await review.settle(order, "failed", session=await review.join("sub_member", me.organisation, Role.MEMBER))
    assert (member.status_code, member.json()["code"]) == (403, "role_required")
    other = await review.join("sub_other", await world.organisation(Tier.ENTERPRISE, mode="managed", account=ACCOUNT))
    foreign, unknown = [await review.settle(number, "failed", session=other) for number in (order, "onr_0000000000000000000000none")]
    assert foreign.status_code == unknown.status_code == 404
    assert without_request_id(foreign) == without_request_id(unknown)
    assert (await review.floor.row(order)).status == "needs_review"


async def test_a_settled_order_answers_its_key_again(review: OrderReview) -> None:
    order, _ = await review.lost(drawn=False)
    key = {"Idempotency-Key": "settle-1"}
    first = await review.settle(order, "failed", **key)
    again = await review.ask(order, "failed", headers=key)
    assert (again.status_code, again.content, again.headers["idempotent-replayed"]) == (200, first.content, "true")


@pytest.mark.long
async def test_an_order_is_settled_once_whoever_is_first(review_on_both: OrderReview) -> None:
    review, floor = review_on_both, review_on_both.floor
    for place in range(2):
        order, iccid = await review.lost(drawn=True)
        tokens = [(await review.ask(order, "delivered", iccid)).json()["confirm_token"] for _ in range(3)]
        answers: list[int] = []

        async def settle(token: str, order: str = order, iccid: str | None = iccid, answers: list[int] = answers) -> None:
            answers.append((await review.ask(order, "delivered", iccid, headers={"X-Confirm-Token": token})).status_code)

        async with anyio.create_task_group() as group:
            for token in tokens:
                group.start_soon(settle, token)
            group.start_soon(floor.reconcile)
        assert set(answers) <= {200, 409} and answers.count(200) <= 1, answers
        assert (await floor.is_settled_well(order), len(await review.settlements())) == (True, place + 1)
    assert (len(await floor.told()), len(await floor.letters(BUYER)), floor.refunds()) == (2, 2, [])


@pytest.mark.parametrize("after", [False, True])
async def test_a_process_that_dies_while_an_order_is_settled_sends_its_money_back_once(review: OrderReview, *, after: bool) -> None:
    order, _ = await review.lost(drawn=False)
    world, headers = review.floor.shop.world, {"Idempotency-Key": "settle-1"}
    headers["X-Confirm-Token"] = (await review.ask(order, "failed", headers=headers)).json()["confirm_token"]
    journal, keyring = world.pipeline.journal, world.pipeline.deps.keyring
    dying = Mortal(world.store, 0, after)
    world.pipeline.journal = StoreJournal(dying, keyring=keyring, blocks=world.blocks, clock=world.clock, replica="rpl_mortal")
    with pytest.raises(Killed):
        await review.ask(order, "failed", headers=headers)
    world.pipeline.journal = journal
    again = await review.ask(order, "failed", headers=headers)
    assert (again.status_code, "idempotent-replayed" in again.headers) == (200, after), again.text
    await review.floor.work(3, every=1)
    assert (len(await review.settlements()), review.floor.refunds(), await review.floor.is_settled_well(order)) == (1, [1000], True)
