"""What happens in the demo organisation after its first start, so that every page of the console has something to show.

Every step is a call of an operation by the demo's key, or what a buyer does on the pages of the shop and of the payment processor. The
words, figures and keys are fixed, so that each first start tells the same story; the ids are drawn as always.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal, NamedTuple, Protocol, cast

import anyio
import orjson

from operations.deps import Deps
from operations.ledger.issuance import OUTCOME_UNKNOWN
from registry.answer import answer_call, gather_reply
from registry.call import Call
from registry.pipeline import Pipeline

DEMO_LIFE_SECONDS = 120.0
"""How long a part of it may wait for what the worker and the simulated systems do."""
DEMO_LOOK_SECONDS, DEMO_AGAIN_SECONDS = 0.1, 0.5
MOMENTARY_STATUSES = (429, 502, 503)
"""Of refusals for the moment: too fast, or an outside system does not answer, as the simulated network while it is being made."""
DEMO_RECEIVER = "https://receiver.sandbox.invalid"
"""A receiver of webhooks in this process; its path says how it answers."""
BUYER_MAIL_DOMAIN = "buyers.demo.invalid"
"""Of the buyers whom the demo itself makes up."""
DRAWING_METHOD = "affectPackageToSubscriber"
NO_FREE_ESIM = 6
"""The status by which the charging system says that it has no free eSIM."""
DemoCard = Literal["pays", "pays_at_once", "declined", "disputed", "reviewed"]


class DemoOutside(Protocol):
    """What people and outside systems do: buyers on pages, and the simulated network, which is told to fail."""

    async def begin_order(self, buyer: str, plan: str) -> str:
        """Chooses `plan` in the demo's shop; the number of the order, whose payment page is open in the browser of `buyer`."""
        ...

    async def begin_top_up(self, buyer: str, plan: str) -> None:
        """Chooses `plan` on the page of the order that `buyer` began."""
        ...

    async def pay_order(self, buyer: str, card: DemoCard) -> None:
        """Pays with a test card on the payment page that `buyer` has open."""
        ...

    async def pay_invoice(self, address: str, card: DemoCard) -> None:
        """Pays with a test card on the page of an invoice at `address`."""
        ...

    async def disturb_network(self, fault: Mapping[str, object]) -> None:
        """The next call of the simulated network that fits `fault` meets it."""
        ...


class DemoStepFailed(RuntimeError):
    """A call was refused, or what was waited for did not come. The text names the operation and the code, and no value."""


class DemoAnswer(NamedTuple):
    """The body of an answer."""

    status: int
    body: Mapping[str, object]

    def text(self, name: str) -> str:
        return str(self.body.get(name))

    @property
    def rows(self) -> Sequence["DemoAnswer"]:
        return [DemoAnswer(self.status, row) for row in cast(Sequence[Mapping[str, object]], self.body.get("data", ()))]

    def row(self, **values: object) -> "DemoAnswer | None":
        """The first row of the list that has these values."""
        return next((row for row in self.rows if all(row.body.get(name) == value for name, value in values.items())), None)


class DemoSold(NamedTuple):
    """Who buys which plan of the demo's shop, and with which card."""

    buyer: str
    plan: str
    card: DemoCard

    @property
    def mail(self) -> str:
        return f"{self.buyer}@{BUYER_MAIL_DOMAIN}"


DELIVERED_ORDERS = (
    DemoSold("anna.lind", "europe-3gb", "pays"),
    DemoSold("bo.winter", "nordics-1gb", "reviewed"),
    DemoSold("carla.rossi", "usa-3gb", "disputed"),
    DemoSold("dev.patel", "japan-3gb", "pays_at_once"),
)
REFUSED_CARD = DemoSold("emil.krause", "world-1gb", "declined")
FAILED_ORDER = DemoSold("fay.moreau", "nordics-1gb", "pays")
DOUBTFUL_ORDER = DemoSold("gil.santos", "europe-3gb", "pays")
TOPPED_UP = DemoSold("anna.lind", "europe-3gb", "pays")
DOUBTFUL_TEMPLATE = 55015
"""What europe-3gb is drawn on: an issuance by hand asks for the same, so that nobody can tell whose the one eSIM is that was drawn."""
INVOICED_BYTES = (1_840_000_000, 920_000_000, 410_000_000, 2_260_000_000, 130_000_000)
"""Of each record of a month, one line after the other."""
MORE_BYTES = 170_000_000
"""By so much each record of a month is larger than that of the month before."""
INVOICED_MONTHS = 3
CDR_NETWORKS = (("Telenor", "NO"), ("Orange", "FR"), ("Telekom", "DE"), ("Movistar", "ES"), ("TIM", "IT"))
DEMO_PAYOUT, DEMO_REFUND = 2500, 300
REPORT_CRON = "0 6 * * MON"


def month_begins(now: float, months_ago: int) -> datetime:
    """The first moment of the calendar month so many before that of `now`, Unix seconds."""
    begins = datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for _ in range(months_ago):
        begins = (begins - timedelta(days=1)).replace(day=1)
    return begins


class DemoLife:
    """The demo's story, in parts that are told one after the other; what one part fails at is missing, and the next one is told."""

    def __init__(self, pipeline: Pipeline[Deps], key: str, outside: DemoOutside) -> None:
        """`key`: the demo's API key, shown at its first start alone, so that nothing of this happens at any other."""
        self._pipeline, self._key, self._outside = pipeline, key, outside
        self._schedule = self._suspension = ""
        self._lines: Sequence[DemoAnswer] = ()
        self._delivered = list[str]()

    def parts(self) -> Iterator[tuple[str, Callable[[], Awaitable[None]]]]:
        """Each part with its name, in the order in which they are told; what the worker has to do goes on beside the parts that follow."""
        yield "webhook endpoints", self.open_endpoints
        yield "lines", self.look_after_lines
        yield "orders", self.sell
        yield "report", self.order_report
        yield "products and intents", self.issue_esims
        yield "agent's key", self.ask_for_approval
        yield "invoices", self.send_invoices
        yield "top-up", self.sell_top_up
        yield "change of lines", self.undo_suspension
        yield "payments", self.move_money
        yield "failed order", self.fail_to_deliver
        yield "doubtful order", self.lose_answers
        yield "report and deliveries", self.finish_report

    async def call(
        self,
        operation: str,
        once: str = "",
        *,
        key: str | None = None,
        reason: str | None = None,
        confirmed: str | None = None,
        **given: object,
    ) -> DemoAnswer:
        """Calls `operation` and confirms it where it asks for that. `once` makes its idempotency key.

        What is refused for the moment is asked for again under the same key. Raises DemoStepFailed for every other refusal, but for one
        whose outcome nobody knows.
        """
        found = self._pipeline.catalogue.operations[operation]
        named = f"demo-{once}" if found.once is not None else None
        with anyio.move_on_after(DEMO_LIFE_SECONDS):
            while True:
                call = Call(
                    found,
                    "http",
                    self._pipeline.ids.new("req_"),
                    credential=key or self._key,
                    arguments=given,
                    idempotency_key=named,
                    confirm_token=confirmed,
                    reason=reason,
                )
                answer = await self._answer(call)
                if answer.status not in MOMENTARY_STATUSES or answer.text("code") == OUTCOME_UNKNOWN:
                    break
                await anyio.sleep(DEMO_AGAIN_SECONDS)
            token = answer.body.get("confirm_token")
            if token is not None and confirmed is None:
                return await self.call(operation, once, key=key, reason=reason, confirmed=str(token), **given)
            if answer.status >= 400 and answer.text("code") != OUTCOME_UNKNOWN:
                raise DemoStepFailed(f"{operation} was refused: {answer.text('code')}")
            return answer
        raise DemoStepFailed(f"{operation} had no other answer than to come again in {DEMO_LIFE_SECONDS:.0f} seconds")

    async def look(self, operation: str, **given: object) -> DemoAnswer:
        """Reads as a page does: it is neither charged nor recorded, however often it is asked. A refusal is an answer without rows."""
        call = Call(
            self._pipeline.catalogue.operations[operation],
            "web",
            self._pipeline.ids.new("req_"),
            credential=self._key,
            arguments=given,
            prepaid_by_parent=True,
        )
        return await self._answer(call)

    async def _answer(self, call: Call) -> DemoAnswer:
        def fault(_call: Call, error: BaseException) -> None:
            raise error

        reply = await gather_reply(await answer_call(self._pipeline, call, fault), call.request_id)
        return DemoAnswer(reply.status, cast(Mapping[str, object], orjson.loads(reply.body)))

    async def until(self, what: str, seen: Callable[[], Awaitable[bool]]) -> None:
        """Waits until `seen` says so. Raises DemoStepFailed where that takes a minute."""
        with anyio.move_on_after(DEMO_LIFE_SECONDS):
            while True:
                if await seen():
                    return
                await anyio.sleep(DEMO_LOOK_SECONDS)
        raise DemoStepFailed(f"{what} did not come in {DEMO_LIFE_SECONDS:.0f} seconds")

    async def open_endpoints(self) -> None:
        """A receiver that takes everything, and one that fails at everything."""
        await self.call("create_connectivity_webhook_endpoint", "good", url=f"{DEMO_RECEIVER}/hooks")
        failing = await self.call("create_connectivity_webhook_endpoint", "failing", url=f"{DEMO_RECEIVER}/status/500")
        await self.call(
            "update_webhook_endpoint",
            "failing",
            id=failing.text("id"),
            types=["order.*", "invoice.*"],
            description="The bookkeeping, whose server answers 500",
        )
        await self.call("send_test_event", "failing", id=failing.text("id"), type="order.ready")

    async def look_after_lines(self) -> None:
        """Notes and tags, and three lines that are suspended together. The simulated network is made meanwhile, which takes its time."""
        await self.until("the simulated network", self._is_network_there)
        listed = await self.call("list_subscribers", status="ACTIVE", limit=12, fields=["iccid", "subscriberName"])
        self._lines = listed.rows
        iccids = [line.text("iccid") for line in self._lines]
        for number, note in enumerate(("Asked for an invoice by mail.", "Travels to Norway in March; wants a larger package then.")):
            await self.call("add_subscriber_note", str(number), iccid=iccids[number], note=note, author="Mia")
        await self.call("tag_lines", "travel", tag="travel", iccids=iccids[:6])
        await self.call("tag_lines", "late-payer", tag="late-payer", iccids=iccids[6:9])
        await self.call("fleet_problems")  # whoever looks at the fleet first has it read
        plan = await self.call(
            "plan_changes", "suspend", change={"action": "set_status", "status": "SUSPENDED"}, lines={"iccids": iccids[6:9]}
        )
        self._suspension = plan.text("id")
        await self._apply("suspend", self._suspension)

    async def _is_network_there(self) -> bool:
        return bool((await self.look("list_reseller_accounts")).rows)

    async def _apply(self, once: str, change_set: str) -> None:
        """Applies a plan once it is one."""

        async def planned() -> bool:
            return (await self.look("get_change_set", id=change_set, limit=1)).text("state") == "planned"

        await self.until("the plan of a change set", planned)
        plan = await self.call("get_change_set", id=change_set, limit=1)
        await self.call("apply_changes", once, id=change_set, digest=plan.text("digest"))

    async def _applied(self, change_set: str) -> None:
        async def finished() -> bool:
            return (await self.look("get_change_set", id=change_set, limit=1)).body.get("finished") is not None

        await self.until("the end of a change set", finished)

    async def undo_suspension(self) -> None:
        await self._applied(self._suspension)
        undo = await self.call("undo_changes", "suspend", id=self._suspension)
        await self._apply("undo", undo.text("id"))
        await self._applied(undo.text("id"))

    async def order_report(self) -> None:
        """A report for every Monday, and one at once."""
        schedule = await self.call(
            "create_intelligence_schedule", "monday", composite="fleet_health", cron=REPORT_CRON, timezone="Europe/Berlin", share=True
        )
        self._schedule = schedule.text("id")
        await self.call("run_intelligence_schedule", "monday", id=self._schedule)

    async def finish_report(self) -> None:
        """The report that was ordered has been made, the receiver that fails has been tried, and the processor has told of all money."""

        async def made() -> bool:
            schedules = (await self.look("list_intelligence_schedules")).rows
            reports = [cast("Mapping[str, object]", row.body.get("last_report") or {}) for row in schedules]
            return bool(reports) and all(report.get("finished") for report in reports)

        async def tried() -> bool:
            failed = await self.look("list_deliveries", state="failed", limit=1)
            return bool(failed.rows)

        await self.until("the report", made)
        await self.until("the failed delivery", tried)
        for told in ("operator_billing_list_payouts", "operator_billing_list_refunds", "operator_billing_list_fraud_reviews"):
            await self.until(told, partial(self._is_told, told))

    async def _is_told(self, operation: str) -> bool:
        return bool((await self.look(operation)).rows)

    async def issue_esims(self) -> None:
        """A product, test eSIMs with usage, one that waits for its plan, and a live eSIM of the product."""
        product = await self.call(
            "create_connectivity_product",
            "ferry",
            name="Ferry crew 1 GB",
            data_mb=1000,
            validity_days=30,
            countries=["DK", "NO", "SE"],
            price_cents=690,
            currency="EUR",
            package_template_id=55010,
        )
        await self.call("create_connectivity_intent", "crew", plan=product.text("id"), metadata={"cabin": "12"})
        tried = await self.call("create_connectivity_intent", "tried", plan="test_eu_1gb", metadata={"order": "1042"})
        for number, megabytes in enumerate((320.0, 260.5, 290.0)):
            await self.call("create_connectivity_usage_record", str(number), intent=tried.text("id"), quantity_mb=megabytes)
        await self.call("create_connectivity_intent", "unused", plan="test_global_1gb", metadata={"order": "1043"})
        await self.call("create_connectivity_intent", "planless", metadata={"order": "1044"})

    async def ask_for_approval(self) -> None:
        """A key for an agent whose every write waits for a person, and a write of it that waits."""
        agent = await self.call(
            "create_api_key",
            "agent",
            name="support agent",
            description="Answers buyers in the chat",
            restrictions={"toolsets": ["subscribers"], "approval": "every_write", "calls_per_day": 500},
        )
        [line, *_] = self._lines[9:]
        await self.call(
            "modify_subscriber_status",
            "agent",
            key=agent.text("secret"),
            reason="The customer says that the phone was stolen",
            iccid=line.text("iccid"),
            status="SUSPENDED",
        )

    async def send_invoices(self) -> None:
        """Usage of the last months: one month is paid, one is sent, one is a draft."""
        await self.call("update_billing_config", "config", currency="EUR", price_per_gb_cents=950, invoice_prefix="DEMO")
        months = [month_begins(self._pipeline.clock.now(), ago) for ago in range(INVOICED_MONTHS, 0, -1)]
        for number, begins in enumerate(months):
            await self.call("ingest_cdr_events", f"{begins:%Y-%m}", events=self._records(begins, more=number * MORE_BYTES))
        periods = await self.call("list_invoice_periods")
        for begins, end in zip(months, ("paid", "sent", "draft"), strict=True):
            period = periods.row(year=begins.year, month=begins.month)
            if period is None:
                raise DemoStepFailed("a month with call records is no period")
            await self._invoice(period.text("id"), end)

    def _records(self, begins: datetime, *, more: int) -> list[dict[str, object]]:
        return [
            {
                "id": f"demo-{begins:%Y-%m}-{number}",
                "iccid": line.text("iccid"),
                "occurred_at": (begins + timedelta(days=3 * number + 1, hours=9)).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "bytes_up": size // 16,
                "bytes_down": size + more,
                "network": network,
                "country": country,
            }
            for number, (line, size, (network, country)) in enumerate(zip(self._lines, INVOICED_BYTES, CDR_NETWORKS, strict=False))
        ]

    async def _invoice(self, period: str, end: str) -> None:
        """An invoice of a period, as far as `end` says."""
        draft = await self.call(
            "create_invoice", end, period_id=period, recipient_name="Nordwind Reisen GmbH", recipient_email="billing@nordwind.invalid"
        )
        if end == "draft":
            return
        sent = await self.call("update_invoice", end, id=draft.text("id"), status="sent")
        if end == "paid":
            await self._outside.pay_invoice(sent.text("payment_url"), "pays_at_once")

    async def sell(self) -> None:
        """Orders that are paid, and one that is not, because its card is refused."""
        for sold in (*DELIVERED_ORDERS, REFUSED_CARD):
            order = await self._outside.begin_order(sold.mail, sold.plan)
            if sold is not REFUSED_CARD:
                self._delivered.append(order)
            await self._outside.pay_order(sold.mail, sold.card)

    async def _ends(self, number: str, status: str, refund: str | None = None) -> None:
        async def ended() -> bool:
            order = await self.look("get_sold_order", number=number)
            given_back = cast("Mapping[str, object] | None", order.body.get("refund"))
            return order.text("status") == status and (refund is None or (given_back or {}).get("status") == refund)

        await self.until(f"an order that is {status}", ended)

    async def sell_top_up(self) -> None:
        """The orders are delivered, and the first of their buyers wants more."""
        for number in self._delivered:
            await self._ends(number, "ready")
        await self._outside.begin_top_up(TOPPED_UP.mail, TOPPED_UP.plan)
        await self._outside.pay_order(TOPPED_UP.mail, TOPPED_UP.card)

    async def _added(self) -> bool:
        order = await self.look("get_sold_order", number=self._delivered[0])
        top_ups = cast(Sequence[Mapping[str, object]], order.body.get("top_ups") or ())
        return bool(top_ups) and all(top_up["status"] == "ready" for top_up in top_ups)

    async def move_money(self) -> None:
        """Part of a payment goes back, a payout is made, and there is a code for buyers."""
        await self.call("operator_create_promotion", "spring", code="SPRING-15", percent_off=15, max_redemptions=500)

        async def paid() -> bool:
            invoices = await self.look("list_invoices")
            charges = await self.look("operator_billing_list_charges")
            return invoices.row(status="paid") is not None and any(row.body.get("disputed") for row in charges.rows)

        await self.until("the payment of an invoice, and the dispute", paid)
        charges = await self.call("operator_billing_list_charges")
        # of the first buyer's, by name: the processor's list may turn two payments of one second around, and a refund closes a review
        charge = next(row for row in charges.rows if row.text("order") == self._delivered[0])
        await self.call(
            "operator_billing_create_refund", "goodwill", charge=charge.text("id"), amount=DEMO_REFUND, reason="requested_by_customer"
        )
        await self.call("operator_billing_create_manual_payout", "first", amount=DEMO_PAYOUT, currency="EUR")

    async def fail_to_deliver(self) -> None:
        """The stock is empty when an order is delivered: it fails, and what was paid goes back. No top-up may meet that in its place."""
        await self.until("the top-up", self._added)
        order = await self._outside.begin_order(FAILED_ORDER.mail, FAILED_ORDER.plan)
        await self._outside.disturb_network({"method": DRAWING_METHOD, "code": NO_FREE_ESIM})
        await self._outside.pay_order(FAILED_ORDER.mail, FAILED_ORDER.card)
        await self._ends(order, "failed", "succeeded")

    async def lose_answers(self) -> None:
        """Two draws of the same package get no answer, and one eSIM was drawn: whose it is nobody can tell but a person.

        The first call never arrives, so that for a quarter of an hour nothing is settled of it; the second one does, and is lost on its
        way back. From then on the evidence fits both.
        """
        accounts = await self.call("list_reseller_accounts")
        order = await self._outside.begin_order(DOUBTFUL_ORDER.mail, DOUBTFUL_ORDER.plan)
        await self._outside.disturb_network({"method": DRAWING_METHOD, "drop_before": True})
        await self.call(
            "issue_esim_from_inventory",
            "lost-answer",
            accountId=accounts.rows[0].body["id"],
            packageTemplateId=DOUBTFUL_TEMPLATE,
        )
        await self._outside.disturb_network({"method": DRAWING_METHOD, "drop_after": True})
        await self._outside.pay_order(DOUBTFUL_ORDER.mail, DOUBTFUL_ORDER.card)
        await self._ends(order, "needs_review")
