"""A processor on loopback that answers by script and notes what it was asked; its objects pass through the official library's models."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import stripe

from clients.http import Outbound, OutboundLimits
from clients.payments.client import ProcessorClient
from clients.payments.port import ProcessorSettings

PROCESSOR_KEY = "sk_test_4eC39HqLyjWDarjtT1zdp7dc"
PROCESSOR_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OLD_SECRET = "whsec_olderSecretStillInUse123"
CONNECTED = "acct_1Tenant"
EMAIL = "billing@customer.example"
NO_ANSWER, CLOSE = "hang", "close"


class Asked(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    form: dict[str, str]

    @property
    def key(self) -> str | None:
        return self.headers.get("idempotency-key")


class ProcessorAnswer(NamedTuple):
    """What is said: a body, JSON where it is no bytes; or what is done instead."""

    body: object = b""
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    instead: str | None = None


def fails(status: int, headers: dict[str, str] | None = None, **error: str) -> ProcessorAnswer:
    """An error in the processor's shape, with a text that must never be seen again."""
    message = f"No such thing: {EMAIL} with key {PROCESSOR_KEY} at https://dashboard.vendor.example/x"
    return ProcessorAnswer(
        {"error": {"type": "invalid_request_error", "message": message, **error}}, status, {"request-id": "req_1", **(headers or {})}
    )


@dataclass
class Vendor:
    """Each answer is used once, the last one for ever."""

    answers: list[ProcessorAnswer] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    slept: list[float] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(
        self, *, seconds: float = 10.0, url: str | None = None, client_id: str = "", connect_url: str = "/oauth-host"
    ) -> ProcessorClient:
        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        settings = ProcessorSettings(
            key=PROCESSOR_KEY,
            webhook_secrets=(PROCESSOR_SECRET, OLD_SECRET),
            client_id=client_id,
            url=url or self.url,
            connect_url=self.url + connect_url,
            total_seconds=seconds,
        )
        return ProcessorClient(settings, Outbound(OutboundLimits(total_seconds=10.0)), sleep)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self.one(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client hung up
        finally:
            writer.close()

    async def one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = (await reader.readexactly(int(headers.get("content-length", "0")))).decode()
        method, target, _ = first.split(" ")
        split = urlsplit(target)
        self.asked.append(Asked(method, split.path, dict(parse_qsl(split.query)), headers, dict(parse_qsl(body, keep_blank_values=True))))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer.instead is not None:
            if answer.instead == NO_ANSWER:
                await reader.read()
            return False
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        head = {"content-type": "application/json", "content-length": str(len(content)), **answer.headers}
        writer.write("\r\n".join([f"HTTP/1.1 {answer.status} X", *(f"{n}: {v}" for n, v in head.items()), "", ""]).encode() + content)
        await writer.drain()
        return True


@asynccontextmanager
async def vendor(*answers: ProcessorAnswer) -> AsyncGenerator[tuple[Vendor, ProcessorClient]]:
    made = Vendor(list(answers))
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    client = made.client()
    try:
        yield made, client
    finally:
        await client.aclose()
        server.close()


def shaped(model: type[stripe.StripeObject], **members: object) -> dict[str, object]:
    """As the library's own model has it: a member that the model does not declare is a mistake of the test."""
    known = {name for kind in model.__mro__ for name in getattr(kind, "__annotations__", {})}
    assert set(members) <= known, set(members) - known
    return model.construct_from(members, None).to_dict()


def listing(*rows: Mapping[str, object], has_more: bool = False) -> ProcessorAnswer:
    return ProcessorAnswer({"object": "list", "url": "/v1/things", "has_more": has_more, "data": list(rows)})


def body_of(model: type[stripe.StripeObject], **members: object) -> Callable[..., dict[str, object]]:
    """What makes a body of such members, with those changed that it is given."""
    return lambda **changes: shaped(model, **{**members, **changes})


charge_body = body_of(
    stripe.Charge,
    id="ch_1",
    object="charge",
    amount=1250,
    amount_refunded=0,
    currency="eur",
    status="succeeded",
    refunded=False,
    disputed=False,
    created=1_800_000_000,
    payment_intent="pi_1",
    application_fee="fee_1",
    failure_code=None,
    livemode=False,
    billing_details={"email": EMAIL, "name": "Jenny"},
    metadata={"order": "ord_1"},
)
refund_body = body_of(
    stripe.Refund,
    id="re_1",
    object="refund",
    amount=500,
    currency="eur",
    status="pending",
    charge="ch_1",
    payment_intent="pi_1",
    reason="requested_by_customer",
    created=1_800_000_100,
    metadata={},
)
payout_body = body_of(
    stripe.Payout,
    id="po_1",
    object="payout",
    amount=9000,
    currency="usd",
    status="in_transit",
    automatic=False,
    arrival_date=1_800_086_400,
    created=1_800_000_200,
    failure_code=None,
    metadata={"by": "us"},
)
dispute_body = body_of(
    stripe.Dispute,
    id="du_1",
    object="dispute",
    amount=1250,
    currency="eur",
    status="needs_response",
    reason="fraudulent",
    charge="ch_1",
    payment_intent="pi_1",
    evidence_details={"due_by": 1_800_600_000, "submission_count": 0, "has_evidence": False, "past_due": False},
    created=1_800_000_300,
)
fee_body = body_of(
    stripe.ApplicationFee,
    id="fee_1",
    object="application_fee",
    account=CONNECTED,
    amount=13,
    amount_refunded=0,
    currency="eur",
    charge="ch_1",
    created=1_800_000_001,
)
invoice_body = body_of(
    stripe.Invoice,
    id="in_1",
    object="invoice",
    status="draft",
    total=4200,
    amount_paid=0,
    currency="eur",
    hosted_invoice_url=None,
    status_transitions={"paid_at": None, "finalized_at": None},
    metadata={"invoice": "inv_1"},
)
session = body_of(
    stripe.checkout.Session,
    id="cs_test_1",
    object="checkout.session",
    status="open",
    payment_status="unpaid",
    amount_total=1999,
    currency="gbp",
    payment_intent=None,
    expires_at=1_800_003_600,
    url="https://pay.vendor.example/c/cs_test_1",
    customer_details={"email": EMAIL},
    customer_email=None,
    metadata={"order": "ord_1"},
)
account = body_of(
    stripe.Account,
    id=CONNECTED,
    object="account",
    type="express",
    charges_enabled=True,
    payouts_enabled=False,
    details_submitted=True,
    default_currency="eur",
    requirements={"currently_due": ["external_account"]},
    metadata={"organisation": "org_1"},
    email=EMAIL,
)
review = body_of(
    stripe.Review, id="prv_1", object="review", open=True, reason="rule", charge="ch_1", payment_intent="pi_1", created=1_800_000_400
)
