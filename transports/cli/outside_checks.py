"""The findings of `reseller doctor` about outside systems: certificates, charging system, payment processor, model, mail and outages."""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from http.client import HTTPConnection, HTTPException
from typing import NamedTuple, cast
from urllib.parse import urlsplit

import orjson

from clients.http import Outbound, OutboundFailed, OutboundLimits, trusted_authorities
from clients.mail.letter import MailFailed
from clients.mail.smtp import UNTRUSTED_CERTIFICATE, SmtpMail, SmtpSettings, smtp_settings
from clients.ocs.client import Ocs, OcsPool, ocs_limits
from clients.ocs.link import OcsSettings
from clients.payments.client import PROCESSOR_LIMITS, ProcessorClient
from clients.payments.port import KeyRefused
from registry.clock import SystemClock
from registry.errors import OcsError, Refusal
from transports.payments import processor_settings
from transports.settings import Settings
from transports.upstream import ocs_settings


class Finding(NamedTuple):
    """One check: what was looked at, how it stands, and the fix when it is not well."""

    subject: str
    state: str
    fix: str | None = None

    @property
    def mark(self) -> str:
        return "BAD" if self.fix else "ok"


class FindingNote(Finding):
    """Neither well nor wrong: the reader has to judge."""

    @property
    def mark(self) -> str:
        return "note"


CERTIFICATE_SECONDS = 5.0
CERTIFICATE_FIX = (
    "have it certified for this name, or name the authority that signed it: SERVICE_CA_FILE is trusted beside the public ones, "
    "SSL_CERT_FILE in their place"
)


def certificate_fault(address: str, settings: Settings) -> str | None:
    """Why the certificate at an https address is not accepted, in OpenSSL's words; None if it is, or if nothing answers."""
    parts = urlsplit(address)
    if parts.scheme != "https" or parts.hostname is None:
        return None
    try:
        with (
            socket.create_connection((parts.hostname, parts.port or 443), timeout=CERTIFICATE_SECONDS) as raw,
            trusted_authorities(settings.ca_file).wrap_socket(raw, server_hostname=parts.hostname),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except (OSError, UnicodeError):
        return None


def unanswered_finding(subject: str, address: str, why: str, fix: str, settings: Settings) -> Finding:
    """The finding about a system that gave no answer: its certificate where that is the reason, else `why` and `fix`."""
    fault = certificate_fault(address, settings)
    if fault is None:
        return Finding(subject, f"{address}: {why}", fix)
    return Finding(subject, f"{address}: its certificate is not accepted ({fault})", CERTIFICATE_FIX)


def examine_identity(settings: Settings) -> Finding:
    """The identity provider: built in, or whether the certificate at the address of its keys is accepted."""
    if settings.own_identity:
        return Finding("identity", "built in")
    fault = certificate_fault(settings.auth_jwks_url, settings)
    if fault is None:
        return Finding("identity", f"{settings.auth_jwks_url}, whose keys are fetched when the first token comes")
    return Finding("identity", f"{settings.auth_jwks_url}: its certificate is not accepted ({fault})", CERTIFICATE_FIX)


UPSTREAM_SECONDS = 5.0
UPSTREAM_FIX = "check SERVICE_OCS_URL, SERVICE_OCS_AUTH, and that this machine may reach it"
OCS_FIXES = {
    8: "set SERVICE_OCS_TOKEN to the reseller token that the provider gave you, and SERVICE_OCS_AUTH to the way it takes it",
    9: "have the provider add this machine's address to its allow list",
    100: "try again in a minute",
}


def examine_upstream(settings: Settings) -> Finding:
    """Simulated, or asked which reseller the service's token belongs to."""
    token = settings.ocs_token.get_secret_value()
    if not settings.ocs_url:
        return Finding("upstream", "simulated network in this process; SERVICE_OCS_URL names a real charging system")
    if not token:
        return Finding("upstream", f"{settings.ocs_url}, not asked: without SERVICE_OCS_TOKEN only own-token organisations reach it")
    try:
        reseller = asyncio.run(reseller_of_token(replace(ocs_settings(settings), total_seconds=UPSTREAM_SECONDS), token))
    except Refusal as refusal:
        return unanswered_finding("upstream", settings.ocs_url, refusal.message, fix_of_refusal(refusal), settings)
    return Finding("upstream", f"{settings.ocs_url} answers as reseller {reseller}")


async def reseller_of_token(wire: OcsSettings, token: str) -> int | None:
    """The reseller that a token belongs to, by the cheapest call, which changes nothing. Raises Refusal. Waits for the network."""
    async with client_of_token(wire, token) as ocs:
        return (await ocs.reseller.get_reseller_info()).get("id")


async def accounts_of_token(wire: OcsSettings, token: str) -> dict[int, str]:
    """Names of all accounts that a token sees, by id, lowest first. Raises Refusal. Waits for the network."""
    async with client_of_token(wire, token) as ocs:
        resellers = await ocs.reseller.list_reseller_account()
    accounts = [account for reseller in resellers for account in reseller.get("account", [])]
    return dict(sorted((account["id"], account.get("name", "")) for account in accounts if "id" in account))


@asynccontextmanager
async def client_of_token(wire: OcsSettings, token: str) -> AsyncGenerator[Ocs]:
    pool = OcsPool(Outbound(ocs_limits(wire), ca_file=wire.ca_file), wire, SystemClock())
    try:
        yield pool.for_token(token)
    finally:
        await pool.aclose()


def fix_of_refusal(refusal: Refusal) -> str:
    """How to fix the cause of `refusal`."""
    code = refusal.ocs_code if isinstance(refusal, OcsError) else None
    return OCS_FIXES.get(code or 0, UPSTREAM_FIX)


PAYMENTS_SECONDS = 5.0
PAYMENTS_FIX = "check SERVICE_PAYMENTS_URL, and that this machine may reach it"
PAYMENTS_KEY_FIX = "set SERVICE_PAYMENTS_KEY to a secret key as the processor's dashboard shows it, or let the restricted one do more"
OTHER_MONEY_FIX = "set SERVICE_PAYMENTS_KEY to a key of this processor: the answer is not about the money that the key names"


def examine_payments(settings: Settings) -> Finding:
    """Simulated, or asked for the service's own balance, which changes nothing."""
    if settings.simulates_payments:
        return Finding("payments", "simulated processor in this process; SERVICE_PAYMENTS_KEY names a real one")
    where = settings.payments_url or "the processor"
    try:
        expected, live = asyncio.run(ask_for_money_kind(settings))
    except KeyRefused:
        return Finding("payments", f"{where} does not accept our key, or not for reading the balance", PAYMENTS_KEY_FIX)
    except Refusal as refusal:
        return unanswered_finding("payments", where, refusal.message, PAYMENTS_FIX, settings)
    if live != expected:
        return Finding("payments", f"{where} answers for {money_kind(live)}", OTHER_MONEY_FIX)
    return Finding(
        "payments", f"{where} accepts our key, {money_kind(live)}" + ("" if settings.payments_client_id else ", no OAuth client")
    )


async def ask_for_money_kind(settings: Settings) -> tuple[bool, bool]:
    """Whether the key, and whether the processor, says that money is real."""
    wire = replace(processor_settings(settings), total_seconds=PAYMENTS_SECONDS, pauses=())
    processor = ProcessorClient(wire, Outbound(PROCESSOR_LIMITS, ca_file=settings.ca_file))
    try:
        return processor.live, (await processor.own_balance()).live
    finally:
        await processor.aclose()


def money_kind(live: bool) -> str:
    return "REAL money" if live else "test money"


MODEL_SECONDS = 5.0
MODEL_FIX = "check SERVICE_MODEL_URL, and that this machine may reach it"
MODEL_KEY_FIX = "set SERVICE_MODEL_KEY to a key of this endpoint"


def examine_model(settings: Settings) -> Finding:
    """None, or asked for its list of models, which is free."""
    if not settings.model_url:
        return Finding("model", "none: the assistant answers nothing, insights are measured; SERVICE_MODEL_URL names one")
    try:
        status, body = asyncio.run(ask_for_models(settings))
    except OutboundFailed as failed:
        return unanswered_finding("model", settings.model_url, f"it does not answer ({failed.kind})", MODEL_FIX, settings)
    if status in (401, 403):
        return Finding("model", f"{settings.model_url} does not accept our key", MODEL_KEY_FIX)
    if status >= 400:  # not every endpoint has a list
        return Finding("model", f"{settings.model_url} answers {status} when asked for its models, so nothing is known of the names")
    known = model_names(body)
    missing = [name for name in settings.model_name if known and name not in known]
    if missing:
        return Finding("model", f"{settings.model_url} lists no model {', '.join(missing)}", "set SERVICE_MODEL_NAME to names it has")
    return Finding("model", f"{settings.model_url} accepts our key, {', '.join(settings.model_name)}")


async def ask_for_models(settings: Settings) -> tuple[int, bytes]:
    key = settings.model_key.get_secret_value()
    outbound = Outbound(OutboundLimits(total_seconds=MODEL_SECONDS), ca_file=settings.ca_file)
    try:
        headers = {"accept": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
        reply = await outbound.exchange("GET", settings.model_url.rstrip("/") + "/models", headers=headers)
        return reply.status, reply.body
    finally:
        await outbound.aclose()


def model_names(body: bytes) -> list[str]:
    """The names in a list of models; none where it is no such list."""
    try:
        listed = cast(object, orjson.loads(body))
    except orjson.JSONDecodeError:
        return []
    rows = cast("dict[str, object]", listed).get("data") if isinstance(listed, dict) else None
    ids = [cast("dict[str, object]", row).get("id") for row in cast("list[object]", rows)] if isinstance(rows, list) else []
    return [id for id in ids if isinstance(id, str)]


MAIL_SECONDS = 5.0
MAIL_FIX = (
    "check SERVICE_SMTP_URL (smtps:// for port 465, smtp:// for 587), its user and password, and that this machine may reach the server"
)


def examine_mail(settings: Settings) -> Finding:
    """Shown in the terminal, or a server that is greeted as for a mail; none is sent."""
    address = settings.smtp_url.get_secret_value()
    if not address:
        return Finding("mail", "shown by serve in its terminal; SERVICE_SMTP_URL names a mail server")
    smtp = smtp_settings(address, settings.mail_from)
    where = f"{smtp.host}:{smtp.port}"
    try:
        encrypted = asyncio.run(SmtpMail(smtp, SystemClock(), ca_file=settings.ca_file, seconds=MAIL_SECONDS).greet())
    except MailFailed as failed:
        return Finding("mail", f"{where}: {failed}", CERTIFICATE_FIX if str(failed) == UNTRUSTED_CERTIFICATE else MAIL_FIX)
    return Finding("mail", f"{where} answers, {mail_security_text(smtp, encrypted)}")


def mail_security_text(smtp: SmtpSettings, encrypted: bool) -> str:
    """How mails travel, without the password and the user, which is often an address."""
    return ("encrypted" if encrypted else "NOT encrypted") + (", and takes our user and password" if smtp.user is not None else "")


OUTAGE_SECONDS = 2.0
METRIC_SAMPLE = re.compile(r'^reseller_upstream_(waiting|open|open_organisations)\{system="(\w+)"\} ([0-9.]+)$', re.MULTILINE)
METRICS_PORT_FIX = "set SERVICE_METRICS_PORT to that of a running server; each tells of its own calls"
OUTAGE_FIX = "calls are sent again by themselves as soon as it answers; if this machine reaches it, ask its provider"


def examine_outages(settings: Settings) -> list[Finding]:
    """One finding for each outside system that gets no calls from the server; none where no metrics are served."""
    if not settings.metrics_port:
        return []
    found = read_answer(settings.metrics_host, settings.metrics_port, "/metrics")
    if found is None:
        return [FindingNote("outages", f"nothing serves metrics at {settings.metrics_host}:{settings.metrics_port}: {METRICS_PORT_FIX}")]
    samples: dict[str, dict[str, float]] = {}
    for name, system, value in METRIC_SAMPLE.findall(found.decode()):
        samples.setdefault(system, {})[name] = float(value)
    away = [finding for system, values in samples.items() for finding in outage_findings(system.replace("_", " "), values)]
    return away or [Finding("outages", "none: the process that was asked sends its calls to every outside system")]


def outage_findings(system: str, values: dict[str, float]) -> list[Finding]:
    waiting = f"{values.get('waiting', 0):g} requests wait for it"
    if values.get("open"):
        return [Finding("outages", f"the {system} does not answer: the running server refuses calls to it; {waiting}", OUTAGE_FIX)]
    if values.get("open_organisations"):
        some = f"{values['open_organisations']:g} organisations"
        return [FindingNote("outages", f"the {system} does not answer the calls of {some}, which are refused; others go on; {waiting}")]
    return []


def read_answer(host: str, port: int, path: str, most: int | None = None) -> bytes | None:
    """The body, or its first `most` bytes, that the server at `host` and `port` answers; None where nothing answers."""
    connection = HTTPConnection(host, port, timeout=OUTAGE_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().read(most)
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
