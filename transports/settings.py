"""Settings: read once from the environment (prefix SERVICE_), an optional .env file and a secrets directory, then frozen.

Our own thirty lines instead of pydantic-settings, whose import alone costs a third of the start-up budget.
"""

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, InstanceOf, PrivateAttr, SecretStr, model_validator

from clients.webhooks.addresses import PRIVATE_RANGES, PrivateReceivers, is_in_networks, parse_private_receivers
from registry.caller import Tier
from registry.limits import TIERS, TierLimits


def normal_base_url(address: str) -> str:
    """Our address as a browser's Origin has it, in lower case and without a port that goes without saying: forms are compared with it."""
    parts = urlsplit(address)
    host, default = parts.hostname or "", {"http": 80, "https": 443}.get(parts.scheme)
    host = f"[{ip_address(host)}]" if ":" in host else host
    port = "" if parts.port in (None, default) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def is_readable_address(address: str) -> bool:
    try:
        return bool(normal_base_url(address))
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class HistoryDays:
    """For how many days each kind of history is kept; 0: for ever.

    `answers`: what was answered under idempotency keys that never expire; the keys stay. `issuances`: rows that ended without an eSIM.
    `intents`: test intents, and live ones that failed. `events`: the three that every endpoint was promised, with deliveries; `event_log`:
    every event in the order of commits. `call_records`: the ids and the sums of the months stay.
    """

    audit: int = 90
    answers: int = 0
    issuances: int = 0
    intents: int = 0
    events: int = 0
    event_log: int = 90
    deliveries: int = 0
    call_records: int = 0


SHORTEST_HISTORY = HistoryDays(audit=1, answers=30, issuances=30, intents=30, events=30, event_log=7, deliveries=7, call_records=62)
"""Longer than any call, retry or settlement of an unknown outcome lasts; records of a month until the month after it is over."""


SETTING_PREFIX = "SERVICE_"
ENV_FILE = ".env"
TIER_LIMIT_RANGES = {"calls_per_day": 1_000_000_000, "burst_per_second": 100_000, "burst_size": 1_000_000, "ai_calls_per_day": 1_000_000}
PRIVATE_DOMAINS = (".internal", ".local", ".localdomain", ".home.arpa", ".svc", ".cluster.local")
MAIL_ATOM, DOMAIN_LABEL = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+", r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
MAILBOX = rf"(?=[^@]{{1,64}}@[^@>]{{1,253}}>?$){MAIL_ATOM}(?:\.{MAIL_ATOM})*@{DOMAIN_LABEL}(?:\.{DOMAIN_LABEL})*"
MAIL_FROM_PATTERN = re.compile(rf"[^<>@\x00-\x1f\x7f]{{0,64}}<{MAILBOX}>|{MAILBOX}")
SMTP_URL_PATTERN = re.compile(
    r"smtps?://(?:[^:@/?#\[\]\s]+(?::[^:@/?#\[\]\s]*)?@)?(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?/?"
)
SHARED_SECRET_SETTINGS = ("internal_api_key", "storefront_api_key", "bridge_webhook_secret")
SHORTEST_SECRET = 16
PRODUCTION_DRAIN_SECONDS = 5
PROCESSOR_KEY_PATTERN = re.compile(r"(sk|rk)_(test|live)_[A-Za-z0-9_]{8,240}")
PROCESSOR_SECRET_PATTERN = re.compile(r"whsec_[A-Za-z0-9+/=_-]{8,240}")
HTTPS_IN_PRODUCTION = (
    "base_url",
    "auth_issuer",
    "auth_jwks_url",
    "ocs_url",
    "ocs_statistics_url",
    "payments_url",
    "payments_connect_url",
    "model_url",
)
MODEL_NAME_PATTERN = re.compile(r"[A-Za-z0-9._:/@+-]{1,100}")
ORIGIN_PATTERN = re.compile(r"[a-z][a-z0-9+.-]{0,30}://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
DEFAULT_PORT_ADDRESS = re.compile(r"http://.*:80|https://.*:443")
WEB_ADDRESS_PATTERN = re.compile(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(?:/[A-Za-z0-9._~%+-]*)*")
IpNetwork = IPv4Network | IPv6Network


class BadSettings(Exception):
    """A setting is missing or wrong; the message names it and the fix."""


class UnknownSetting(BadSettings):
    """A setting that there is not, and the one that was probably meant."""

    def __init__(self, name: str) -> None:
        self.near = next(
            iter(get_close_matches(name, [SETTING_PREFIX + known.upper() for known in Settings.model_fields], n=1, cutoff=0.85)), None
        )
        guess = f"; did you mean {self.near}?" if self.near else ";"
        super().__init__(f"unknown setting {name}{guess} `reseller doctor` lists the known ones")


def split_words(value: object) -> object:
    """Comma-separated text as a tuple."""
    return comma_words(value) if isinstance(value, str) else value


def comma_words(text: str) -> tuple[str, ...]:
    """The non-empty parts between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def read_networks(value: object) -> object:
    return tuple(ip_network(part) for part in comma_words(value)) if isinstance(value, str) else value


def read_private_receivers(value: object) -> object:
    """Comma-separated private networks and host names."""
    return parse_private_receivers(comma_words(value)) if isinstance(value, str) else value


def read_tier_limits(tier: Tier) -> Callable[[object], object]:
    """Reads `name=number` pairs by comma over the limits that the tier has by itself."""

    def read(value: object) -> object:
        """The limits; a name or a number that cannot be is refused."""
        if not isinstance(value, str):
            return value
        given: dict[str, float] = {}
        for pair in comma_words(value):
            name, _, number = (part.strip() for part in pair.partition("="))
            if name not in TIER_LIMIT_RANGES:
                raise ValueError(f"{name[:40]!r} is no limit; there are {', '.join(TIER_LIMIT_RANGES)}, each as name=number, by comma")
            most = TIER_LIMIT_RANGES[name]
            if not (re.fullmatch(r"[0-9]{1,12}", number) and 1 <= int(number) <= most):
                raise ValueError(f"{name} must be a whole number from 1 to {most}")
            given[name] = int(number)
        return replace(TIERS[tier], **given)

    return read


def strip_secret(secret: SecretStr) -> SecretStr:
    """A secret without the space around it, which no header carries; one of nothing but space is none."""
    return SecretStr(secret.get_secret_value().strip())


SecretSetting = Annotated[SecretStr, AfterValidator(strip_secret)]
DaysSetting = Annotated[int, Field(ge=0, le=36_500)]
WordsSetting = Annotated[tuple[str, ...], BeforeValidator(split_words)]
NO_SECRET = SecretStr("")


class Settings(BaseModel):
    """Everything a deployment may choose."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    env: Literal["development", "production"] = Field("development", description="production falls back to nothing simulated")
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    base_url: str = Field("", description="public address of the service, https in production; empty: the address it listens on")
    data: Path = Field(Path("data"), description="directory that keeps all state of the embedded default")
    database_url: SecretSetting = Field(NO_SECRET, description="postgresql://...; empty: SQLite in the data directory")
    database_pool: int = Field(16, ge=1, le=200, description="PostgreSQL connections of this process")
    secret_keys: SecretSetting = Field(NO_SECRET, description="keyring kid:base64key,...; the first encrypts, all decrypt")
    internal_api_key: SecretSetting = Field(NO_SECRET, description="bearer of the bridge's calls; at least 16 characters")
    storefront_api_key: SecretSetting = Field(NO_SECRET, description="bearer of the storefront's calls; at least 16 characters")
    bridge_webhook_secret: SecretSetting = Field(NO_SECRET, description="signs inbound pushes; base64, at least 16 characters")
    ocs_url: str = Field("", description="address of the charging system, ending in /v1; empty outside production: a simulated network")
    ocs_token: SecretSetting = Field(NO_SECRET, description="the service's reseller token there, for organisations in managed mode")
    ocs_statistics_url: str = Field("", description="address of its statistics methods where it is another one")
    ocs_auth: Literal["query", "bearer", "token-header"] = Field("query", description="how the token is sent")
    ocs_concurrency: int = Field(8, ge=1, le=200, description="calls under way at once per token, of all processes of a database")
    ocs_zone_method: str = Field(
        "changeNetworkProfileOfLocationZone", description="name of the method that changes a zone's network profile"
    )
    ocs_zone_key: str = Field("locationZoneId", description="its parameter for the zone")
    ocs_profile_key: str = Field("networkProfileId", description="its parameter for the network profile")
    ocs_legacy_expiry: bool = Field(False, description="true for servers that take package expiry as newDateUtc and newPeriod")
    payments_key: SecretSetting = Field(
        NO_SECRET, description="secret key of the payment processor; empty outside production: a simulated one"
    )
    payments_webhook_secret: SecretSetting = Field(NO_SECRET, description="signing secrets of its webhook endpoints, comma-separated")
    payments_client_id: str = Field("", description="OAuth client id there, with which owners of Standard accounts let the service in")
    payments_url: str = Field("", description="address of its API where it is another than the vendor's")
    payments_connect_url: str = Field("", description="address of its OAuth pages where it is another than the vendor's")
    platform_fee_bps: int | None = Field(
        None,
        ge=0,
        le=5000,
        description="the service's share of invoices and sales, 100 = 1 %; default: 100 where payments are simulated, else 0",
    )
    model_url: str = Field("", description="address of an OpenAI-compatible model, ending before /chat/completions; empty: there is none")
    model_key: SecretSetting = Field(NO_SECRET, description="its API key; empty for a model that asks for none")
    model_plain_http: bool = Field(
        False, description="true lets SERVICE_MODEL_URL be http in production, at a private address or a name of your own network"
    )
    model_name: WordsSetting = Field((), description="names of the models there that may be asked, comma-separated, the default one first")
    sandbox_seed: int = Field(1, ge=0, description="which simulated network, where none is configured")
    webhook_allow_nets: Annotated[tuple[IpNetwork, ...], BeforeValidator(read_networks)] = Field(
        (), description="networks that webhooks may reach although they are not public; never in production"
    )
    webhook_private: Annotated[InstanceOf[PrivateReceivers], BeforeValidator(read_private_receivers)] = Field(
        PrivateReceivers(),
        description="private networks and host names that webhooks may reach of organisations that `reseller org allow-private` names",
    )
    ca_file: Path | None = Field(
        None, description="PEM file of your own certificate authorities, trusted beside the public ones for every outside system"
    )
    auth_issuer: str = Field("", description="issuer of session tokens")
    auth_jwks_url: str = Field("", description="where the issuer publishes its keys")
    auth_audience: str = Field("", description="audience of session tokens at the HTTP door")
    auth_sign_in_url: str = Field("", description="where people sign in at that issuer; shown to those who must")
    auth_azp: WordsSetting = Field((), description="authorized parties accepted in tokens that carry no audience")
    signup_tier: Tier = Field(Tier.FREE, description="tier of organisations that sign up: free, pro or enterprise")
    smtp_url: SecretSetting = Field(NO_SECRET, description="smtp[s]://[user:password@]host[:port]; empty outside production: the console")
    mail_from: str = Field("", description="sender of the service's mails, for example Connectivity <noreply@esim.example>")
    trusted_proxies: Annotated[tuple[IpNetwork, ...], BeforeValidator(read_networks)] = Field(
        (), description="networks of proxies whose X-Forwarded-For, X-Request-Id and traceparent are believed"
    )
    allowed_hosts: WordsSetting = Field((), description="Host names served besides the base URL's; * serves any")
    allowed_origins: WordsSetting = Field(
        (), description="origins whose pages may call the API, /mcp and its login from a browser (CORS), as https://app.example"
    )
    upgrade_url: str = Field("", description="where a caller buys a larger tier")
    connect_url: str = Field("", description="where an organisation connects its upstream account")
    limits_free: Annotated[InstanceOf[TierLimits], BeforeValidator(read_tier_limits(Tier.FREE))] = Field(
        TIERS[Tier.FREE], description="limits of the tier free, any of calls_per_day=, burst_per_second=, burst_size=, ai_calls_per_day="
    )
    limits_pro: Annotated[InstanceOf[TierLimits], BeforeValidator(read_tier_limits(Tier.PRO))] = Field(
        TIERS[Tier.PRO], description="limits of the tier pro, written alike"
    )
    limits_enterprise: Annotated[InstanceOf[TierLimits], BeforeValidator(read_tier_limits(Tier.ENTERPRISE))] = Field(
        TIERS[Tier.ENTERPRISE], description="limits of the tier enterprise, written alike"
    )
    burst_limit: bool = Field(True, description="false switches the burst limiter off, for load tests")
    demo: bool | None = Field(None, description="demo data in an empty database; default: on outside production")
    demo_life: bool = Field(
        True, description="false: the demo's first start makes no orders, invoices and other work in the simulated systems, only its shop"
    )
    worker: bool | None = Field(None, description="run the worker inside serve; default: on with SQLite")
    drain_seconds: int | None = Field(
        None,
        ge=0,
        le=60,
        description="seconds a server takes requests after SIGTERM, while /health/ready says 503; default: 5 in production, else 0",
    )
    approval_hours: int = Field(24, ge=1, le=720, description="hours that a call waits for a person to approve it")
    keep_audit_days: DaysSetting = Field(90, description="days that rows of the audit log are kept; 0: for ever")
    keep_answers_days: DaysSetting = Field(
        0, description="days that answers under keys that never expire are kept, at least 30; the keys stay. 0: for ever"
    )
    keep_issuances_days: DaysSetting = Field(
        0,
        description="days, at least 30, that issuances without an eSIM are kept, once their answers are gone; their keys stay. 0: for ever",
    )
    keep_intents_days: DaysSetting = Field(
        0, description="days that test intents and failed intents are kept, at least 30; their keys stay. 0: for ever"
    )
    keep_event_log_days: DaysSetting = Field(
        90, description="days that the log of events is kept, which streams and chosen types read, at least 7; 0: for ever"
    )
    keep_events_days: DaysSetting = Field(0, description="days that events are kept with their deliveries, at least 30; 0: for ever")
    keep_deliveries_days: DaysSetting = Field(0, description="days that deliveries are kept with their attempts, at least 7; 0: for ever")
    keep_call_records_days: DaysSetting = Field(
        0, description="days that call records are kept, at least 62; their ids and the sums that are invoiced stay. 0: for ever"
    )
    delivery_lease_seconds: int = Field(
        60, ge=5, le=600, description="a dead worker's deliveries are taken over after it; under 20 a slow receiver may get one twice"
    )
    metrics_port: int = Field(0, ge=0, le=65535, description="port of GET /metrics for Prometheus; 0: none")
    metrics_host: str = Field("127.0.0.1", description="address of GET /metrics; it has no key, so keep it private")
    build_sha: str = Field("unknown", description="source revision shown by /health; unset in a git checkout: its commit")
    mcp_state_keys: SecretSetting = Field(
        NO_SECRET, description="keys that seal MCP request state, new,old; default: derived from the keyring"
    )
    mcp_edge: bool = Field(True, description="false answers every MCP call through the whole SDK, at three times the cost")
    mcp_events: str = Field(
        "", description="date of the draft of MCP Events whose methods /mcp has, of which 2026-02-19 is known; empty: none"
    )
    limit_concurrency: int = Field(512, ge=1, description="connections served at once")
    connections_per_network: int = Field(
        64, ge=1, description="of these from one address (IPv6: 64 bits); not counted from this machine and from trusted proxies"
    )
    log: Literal["auto", "json", "off"] = Field(
        "auto", description="request log; auto: for people on a terminal, JSON elsewhere; json: JSON always; off: none"
    )

    @model_validator(mode="after")
    def check(self) -> "Settings":
        """What only holds together."""
        if self.env == "production":
            check_production(self)
        if not self.embedded and not self.store_url.startswith(("postgresql://", "postgres://")):
            raise ValueError("SERVICE_DATABASE_URL must start with postgresql://; leave it out for SQLite in SERVICE_DATA")
        if bool(self.auth_issuer) != bool(self.auth_jwks_url):
            raise ValueError("SERVICE_AUTH_ISSUER and SERVICE_AUTH_JWKS_URL go together; set both or neither")
        check_mcp_events(self.mcp_events)
        check_base_url(self.base_url)
        check_origins(self.allowed_origins)
        check_mail(self)
        check_upstream(self)
        check_payments(self)
        check_model(self)
        check_ca_file(self.ca_file)
        check_shared_secrets(self)
        check_history(self.history_days)
        return self

    _secret_keys_file: Path | None = PrivateAttr(None)

    @property
    def secret_keys_file(self) -> Path | None:
        """The file that SERVICE_SECRET_KEYS was read from; None where it stands in the environment, or nowhere."""
        return self._secret_keys_file

    def note_secret_keys_file(self, path: Path | None) -> None:
        """Remembers it, once, while the settings are read."""
        self._secret_keys_file = path

    @property
    def history_days(self) -> HistoryDays:
        """How long each kind of history is kept."""
        return HistoryDays(
            audit=self.keep_audit_days,
            answers=self.keep_answers_days,
            issuances=self.keep_issuances_days,
            intents=self.keep_intents_days,
            events=self.keep_events_days,
            event_log=self.keep_event_log_days,
            deliveries=self.keep_deliveries_days,
            call_records=self.keep_call_records_days,
        )

    @property
    def tiers(self) -> Mapping[Tier, TierLimits]:
        return {Tier.FREE: self.limits_free, Tier.PRO: self.limits_pro, Tier.ENTERPRISE: self.limits_enterprise}

    @property
    def simulates_payments(self) -> bool:
        """The payment processor is one in this process."""
        return not self.payments_key.get_secret_value()

    @property
    def fee_bps(self) -> int:
        """The service's share; where payments are simulated one per cent, so that there is something to see."""
        default = 100 if self.simulates_payments else 0
        return default if self.platform_fee_bps is None else self.platform_fee_bps

    @property
    def drain(self) -> int:
        """Seconds from SIGTERM until the server takes no more connections; nobody waits for a load balancer outside production."""
        default = PRODUCTION_DRAIN_SECONDS if self.env == "production" else 0
        return default if self.drain_seconds is None else self.drain_seconds

    @property
    def own_identity(self) -> bool:
        """People sign in at the built-in identity provider."""
        return not self.auth_issuer

    @property
    def most_waiting(self) -> int:
        """Requests that may wait for any one outside system: half of the connections, so that the others serve what needs none."""
        return max(1, self.limit_concurrency // 2)

    @property
    def embedded(self) -> bool:
        """SQLite in the data directory."""
        return not self.database_url.get_secret_value()

    @property
    def store_url(self) -> str:
        return self.database_url.get_secret_value() or f"sqlite:///{(self.data / 'service.db').absolute()}"

    @property
    def with_demo(self) -> bool:
        """Demo data goes into an empty database."""
        return self.env != "production" if self.demo is None else self.demo

    @property
    def with_demo_life(self) -> bool:
        """The first start of the demo makes work in it: where the outside systems, the worker and the database are this process's own.

        With a real mail server there is none, since it would be asked to mail buyers whom nobody plays. Over PostgreSQL each process
        has simulated systems of its own, so that others would know nothing of what was made in one.
        """
        alone = self.embedded and self.worker is not False and self.simulates_payments and not self.ocs_url
        alone = alone and not self.smtp_url.get_secret_value()
        return self.with_demo and self.demo_life and alone


def check_production(settings: Settings) -> None:
    """Nothing is simulated there, and nothing travels in the clear."""
    names = ("database_url", "secret_keys", "payments_key", "payments_webhook_secret", "smtp_url")
    required: dict[str, SecretStr] = {name: getattr(settings, name) for name in names}
    missing = [SETTING_PREFIX + name.upper() for name, value in required.items() if not value.get_secret_value()]
    missing += [SETTING_PREFIX + name.upper() for name in ("base_url", "ocs_url", "mail_from") if not getattr(settings, name)]
    if missing:
        raise ValueError(f"SERVICE_ENV=production needs {', '.join(missing)}; nothing falls back to a simulation there")
    if settings.webhook_allow_nets:
        raise ValueError("SERVICE_WEBHOOK_ALLOW_NETS is for tests; production does not start with it")
    if settings.demo:
        raise ValueError("SERVICE_DEMO is for trying things out; production does not start with it")
    for name in HTTPS_IN_PRODUCTION:
        address: str = getattr(settings, name)
        if name == "model_url" and settings.model_plain_http and is_private_address(address):
            continue
        if address and not address.startswith("https://"):
            raise ValueError(f"{SETTING_PREFIX}{name.upper()} must start with https:// in production; tokens and keys travel over it")


MCP_EVENTS_DRAFT = "2026-02-19"
"""The date of the draft of MCP Events that this service speaks."""


def check_mcp_events(date: str) -> None:
    """The draft of MCP Events changes without another name than its date: another one than ours would be spoken wrongly."""
    if date not in ("", MCP_EVENTS_DRAFT):
        raise ValueError(f"SERVICE_MCP_EVENTS must be {MCP_EVENTS_DRAFT}, the draft that this release speaks, or be left out for none")


def check_base_url(address: str) -> None:
    """Links, the MCP resource and the allowed Host are made from it. The value is not repeated: it may hold a password."""
    if address and (WEB_ADDRESS_PATTERN.fullmatch(address) is None or not is_readable_address(address)):
        raise ValueError(
            "SERVICE_BASE_URL must be http(s)://host[:port][/path] without user, query or fragment, for example https://esim.example"
        )


def check_origins(origins: tuple[str, ...]) -> None:
    """They are compared with what browsers send, which is written in one way alone. The value is not repeated: it may hold a password.

    Choice: no wildcard; whose pages may call is named.
    """
    for number, origin in enumerate(origins, 1):
        if ORIGIN_PATTERN.fullmatch(origin) is None or DEFAULT_PORT_ADDRESS.fullmatch(origin) is not None:
            raise ValueError(
                "SERVICE_ALLOWED_ORIGINS must be origins as browsers send them: scheme://host[:port] in small letters, without path, last "
                f"slash, wildcard or the scheme's own port, for example https://app.example; entry {number} is none"
            )


def check_mail(settings: Settings) -> None:
    """Where mails go. The address is not repeated: it may hold a password."""
    address = settings.smtp_url.get_secret_value()
    found = SMTP_URL_PATTERN.fullmatch(address)
    if address and (found is None or int(found[1] or 0) > 65535):
        raise ValueError("SERVICE_SMTP_URL must be smtp[s]://[user:password@]host[:port], with the password percent-encoded")
    if settings.mail_from and not MAIL_FROM_PATTERN.fullmatch(settings.mail_from):
        raise ValueError("SERVICE_MAIL_FROM must be an address, or a name and an address in angle brackets")
    if address and not settings.mail_from:
        raise ValueError("SERVICE_SMTP_URL needs SERVICE_MAIL_FROM: mails without a sender are refused everywhere")


def check_addresses(settings: Settings, *names: str) -> None:
    """Refuses settings of these names that are no web address, or one with a credential in it."""
    for name in names:
        address: str = getattr(settings, name)
        if address and WEB_ADDRESS_PATTERN.fullmatch(address) is None:
            raise ValueError(f"{SETTING_PREFIX}{name.upper()} must be http(s)://host[:port]/path without user, query or fragment")


def check_upstream(settings: Settings) -> None:
    """An address carries no credential of its own, and a token is of no use without one. The values are not repeated."""
    check_addresses(settings, "ocs_url", "ocs_statistics_url")
    if not settings.ocs_url and (settings.ocs_token.get_secret_value() or settings.ocs_statistics_url):
        raise ValueError("SERVICE_OCS_TOKEN and SERVICE_OCS_STATISTICS_URL are of no use without SERVICE_OCS_URL")
    if settings.ocs_url and not re.search(r"/v1/?$", settings.ocs_url):
        raise ValueError("SERVICE_OCS_URL must end in /v1; the other version is reached by changing that segment")
    for name in ("ocs_zone_method", "ocs_zone_key", "ocs_profile_key"):
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,79}", getattr(settings, name)):
            raise ValueError(f"{SETTING_PREFIX}{name.upper()} must be a name of letters, digits and _")


def check_payments(settings: Settings) -> None:
    """A key without a secret would be paid and never know of it; anything else without a key is of no use. No value is repeated."""
    key, secret = settings.payments_key.get_secret_value(), settings.payments_webhook_secret.get_secret_value()
    if bool(key) != bool(secret):
        raise ValueError("SERVICE_PAYMENTS_KEY and SERVICE_PAYMENTS_WEBHOOK_SECRET go together; set both or neither")
    if key and not PROCESSOR_KEY_PATTERN.fullmatch(key):
        raise ValueError("SERVICE_PAYMENTS_KEY must be a secret or restricted key: sk_test_..., sk_live_..., rk_test_... or rk_live_...")
    if any(not PROCESSOR_SECRET_PATTERN.fullmatch(one) for one in comma_words(secret)):
        raise ValueError("SERVICE_PAYMENTS_WEBHOOK_SECRET must be whsec_..., as the processor shows it for the endpoint; several by comma")
    check_addresses(settings, "payments_url", "payments_connect_url")
    if not key and (settings.payments_url or settings.payments_connect_url or settings.payments_client_id):
        raise ValueError("SERVICE_PAYMENTS_URL, _CONNECT_URL and _CLIENT_ID are of no use without SERVICE_PAYMENTS_KEY")


def check_model(settings: Settings) -> None:
    """An address is of no use without a name, nor the others without the address. The values are not repeated."""
    if settings.model_url and WEB_ADDRESS_PATTERN.fullmatch(settings.model_url) is None:
        raise ValueError("SERVICE_MODEL_URL must be http(s)://host[:port]/path without user, query or fragment")
    if settings.model_url.rstrip("/").endswith("/completions"):
        raise ValueError("SERVICE_MODEL_URL must end before /chat/completions, as in https://models.example/v1")
    if bool(settings.model_url) != bool(settings.model_name) or (settings.model_key.get_secret_value() and not settings.model_url):
        raise ValueError("SERVICE_MODEL_URL and SERVICE_MODEL_NAME go together, and SERVICE_MODEL_KEY is of no use without them")
    key = settings.model_key.get_secret_value()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("SERVICE_MODEL_KEY must be printable ASCII, since it is sent in a header")
    if any(not MODEL_NAME_PATTERN.fullmatch(name) for name in settings.model_name):
        raise ValueError("SERVICE_MODEL_NAME must be names of letters, digits and ._:/@+- with at most 100 characters; several by comma")


def check_ca_file(path: Path | None) -> None:
    """It holds certificates, or every call outside would fail."""
    if path is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = (
            "it has no certificate in PEM form" if isinstance(error, ssl.SSLError) else getattr(error, "strerror", None) or "not a file"
        )
        raise ValueError(f"SERVICE_CA_FILE: {path} cannot be read ({reason})") from None


def is_private_address(address: str) -> bool:
    """Whether the host of an address lies in one's own network: a private or loopback address, or a name that no public DNS has."""
    host = (urlsplit(address).hostname or "").rstrip(".")
    try:
        found = ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(PRIVATE_DOMAINS))
    return found.is_loopback or is_in_networks(found, PRIVATE_RANGES)


def check_history(days: HistoryDays) -> None:
    """Refuses shorter periods: what is removed sooner may be in use, or be asked for by a repeated call."""
    for kind, value in asdict(days).items():
        shortest: int = getattr(SHORTEST_HISTORY, kind)
        if 0 < value < shortest:
            raise ValueError(f"SERVICE_KEEP_{kind.upper()}_DAYS is {value}; use {shortest} or more, or 0 to keep them for ever")
    if days.issuances and not days.answers:
        raise ValueError(
            "SERVICE_KEEP_ISSUANCES_DAYS needs SERVICE_KEEP_ANSWERS_DAYS: an issuance is kept as long as the answer that tells of it"
        )


def check_shared_secrets(settings: Settings) -> None:
    """Refuses short secrets: who guesses one acts as the bridge or the storefront."""
    for name in SHARED_SECRET_SETTINGS:
        secret: SecretStr = getattr(settings, name)
        length = len(secret.get_secret_value())
        if 0 < length < SHORTEST_SECRET:
            raise ValueError(
                f"{SETTING_PREFIX}{name.upper()} has {length} characters; use {SHORTEST_SECRET} or more, as from `openssl rand -hex 24`"
            )
    bridge = settings.bridge_webhook_secret.get_secret_value().removeprefix("whsec_")
    if not re.fullmatch(r"[A-Za-z0-9+/_-]*={0,2}", bridge) or len(bridge.rstrip("=")) % 4 == 1:
        raise ValueError(
            "SERVICE_BRIDGE_WEBHOOK_SECRET must be base64, with or without whsec_ before it, as from `openssl rand -base64 24`"
        )
