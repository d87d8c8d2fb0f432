"""Settings: read once from the environment (prefix SERVICE_), an optional .env file and a secrets directory, then frozen.

Our own thirty lines instead of pydantic-settings, whose import alone costs a third of the start-up budget.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    PrivateAttr,
    SecretStr,
    ValidationError,
    model_validator,
)

from clients.webhooks.private_receivers import RANGES, PrivateReceivers, lies_in, parse_private_receivers
from registry.limits import TIERS, Tier, TierLimits
from transports.base_url import is_readable
from transports.file_access import writable_by_others
from transports.history_days import SHORTEST, HistoryDays

PREFIX = "SERVICE_"
ENV_FILE = ".env"
LIMIT_RANGES = {"calls_per_day": 1_000_000_000, "burst_per_second": 100_000, "burst_size": 1_000_000, "ai_calls_per_day": 1_000_000}
OWN_NAMES = (".internal", ".local", ".localdomain", ".home.arpa", ".svc", ".cluster.local")
ATOM, LABEL = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+", r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
MAILBOX = rf"(?=[^@]{{1,64}}@[^@>]{{1,253}}>?$){ATOM}(?:\.{ATOM})*@{LABEL}(?:\.{LABEL})*"
MAIL_FROM = re.compile(rf"[^<>@\x00-\x1f\x7f]{{0,64}}<{MAILBOX}>|{MAILBOX}")
SMTP_URL = re.compile(r"smtps?://(?:[^:@/?#\[\]\s]+(?::[^:@/?#\[\]\s]*)?@)?(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?/?")
SHARED_SECRETS = ("internal_api_key", "storefront_api_key", "bridge_webhook_secret")
SHORTEST_SECRET = 16
DRAIN_SECONDS = 5
PROCESSOR_KEY = re.compile(r"(sk|rk)_(test|live)_[A-Za-z0-9_]{8,240}")
PROCESSOR_SECRET = re.compile(r"whsec_[A-Za-z0-9+/=_-]{8,240}")
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
MODEL_NAME = re.compile(r"[A-Za-z0-9._:/@+-]{1,100}")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]{0,30}://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
OWN_PORT = re.compile(r"http://.*:80|https://.*:443")
WEB_ADDRESS = re.compile(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(?:/[A-Za-z0-9._~%+-]*)*")
Network = IPv4Network | IPv6Network


class BadSettings(Exception):
    """A setting is missing or wrong; the message names it and the fix."""


class UnknownSetting(BadSettings):
    """A setting that there is not, and the one that was probably meant."""

    def __init__(self, name: str) -> None:
        self.near = next(iter(get_close_matches(name, [PREFIX + known.upper() for known in Settings.model_fields], n=1, cutoff=0.85)), None)
        guess = f"; did you mean {self.near}?" if self.near else ";"
        super().__init__(f"unknown setting {name}{guess} `reseller doctor` lists the known ones")


def split(value: object) -> object:
    """Comma-separated text as a tuple."""
    return words(value) if isinstance(value, str) else value


def words(text: str) -> tuple[str, ...]:
    """The non-empty parts between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def networks(value: object) -> object:
    """Comma-separated networks."""
    return tuple(ip_network(part) for part in words(value)) if isinstance(value, str) else value


def private_receivers(value: object) -> object:
    """Comma-separated private networks and host names."""
    return parse_private_receivers(words(value)) if isinstance(value, str) else value


def tier_limits(tier: Tier) -> Callable[[object], object]:
    """Reads `name=number` pairs by comma over the limits that the tier has by itself."""

    def read(value: object) -> object:
        """The limits; a name or a number that cannot be is refused."""
        if not isinstance(value, str):
            return value
        given: dict[str, float] = {}
        for pair in words(value):
            name, _, number = (part.strip() for part in pair.partition("="))
            if name not in LIMIT_RANGES:
                raise ValueError(f"{name[:40]!r} is no limit; there are {', '.join(LIMIT_RANGES)}, each as name=number, by comma")
            most = LIMIT_RANGES[name]
            if not (re.fullmatch(r"[0-9]{1,12}", number) and 1 <= int(number) <= most):
                raise ValueError(f"{name} must be a whole number from 1 to {most}")
            given[name] = int(number)
        return replace(TIERS[tier], **given)

    return read


def stripped(secret: SecretStr) -> SecretStr:
    """A secret without the space around it, which no header carries; one of nothing but space is none."""
    return SecretStr(secret.get_secret_value().strip())


Secret = Annotated[SecretStr, AfterValidator(stripped)]
Words = Annotated[tuple[str, ...], BeforeValidator(split)]
EMPTY = SecretStr("")


class Settings(BaseModel):
    """Everything a deployment may choose."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    env: Literal["development", "production"] = Field("development", description="production falls back to nothing simulated")
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    base_url: str = Field("", description="public address of the service, https in production; empty: the address it listens on")
    data: Path = Field(Path("data"), description="directory that keeps all state of the embedded default")
    database_url: Secret = Field(EMPTY, description="postgresql://...; empty: SQLite in the data directory")
    database_pool: int = Field(16, ge=1, le=200, description="PostgreSQL connections of this process")
    secret_keys: Secret = Field(EMPTY, description="keyring kid:base64key,...; the first encrypts, all decrypt")
    internal_api_key: Secret = Field(EMPTY, description="bearer of the bridge's calls; at least 16 characters")
    storefront_api_key: Secret = Field(EMPTY, description="bearer of the storefront's calls; at least 16 characters")
    bridge_webhook_secret: Secret = Field(EMPTY, description="signs inbound pushes; base64, at least 16 characters")
    ocs_url: str = Field("", description="address of the charging system, ending in /v1; empty outside production: a simulated network")
    ocs_token: Secret = Field(EMPTY, description="the service's reseller token there, for organisations in managed mode")
    ocs_statistics_url: str = Field("", description="address of its statistics methods where it is another one")
    ocs_auth: Literal["query", "bearer", "token-header"] = Field("query", description="how the token is sent")
    ocs_concurrency: int = Field(8, ge=1, le=200, description="calls under way at once per token, of all processes of a database")
    ocs_zone_method: str = Field(
        "changeNetworkProfileOfLocationZone", description="name of the method that changes a zone's network profile"
    )
    ocs_zone_key: str = Field("locationZoneId", description="its parameter for the zone")
    ocs_profile_key: str = Field("networkProfileId", description="its parameter for the network profile")
    ocs_legacy_expiry: bool = Field(False, description="true for servers that take package expiry as newDateUtc and newPeriod")
    payments_key: Secret = Field(EMPTY, description="secret key of the payment processor; empty outside production: a simulated one")
    payments_webhook_secret: Secret = Field(EMPTY, description="signing secrets of its webhook endpoints, comma-separated")
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
    model_key: Secret = Field(EMPTY, description="its API key; empty for a model that asks for none")
    model_plain_http: bool = Field(
        False, description="true lets SERVICE_MODEL_URL be http in production, at a private address or a name of your own network"
    )
    model_name: Words = Field((), description="names of the models there that may be asked, comma-separated, the default one first")
    sandbox_seed: int = Field(1, ge=0, description="which simulated network, where none is configured")
    webhook_allow_nets: Annotated[tuple[Network, ...], BeforeValidator(networks)] = Field(
        (), description="networks that webhooks may reach although they are not public; never in production"
    )
    webhook_private: Annotated[InstanceOf[PrivateReceivers], BeforeValidator(private_receivers)] = Field(
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
    auth_azp: Words = Field((), description="authorized parties accepted in tokens that carry no audience")
    signup_tier: Tier = Field(Tier.FREE, description="tier of organisations that sign up: free, pro or enterprise")
    smtp_url: Secret = Field(EMPTY, description="smtp[s]://[user:password@]host[:port]; empty outside production: the console")
    mail_from: str = Field("", description="sender of the service's mails, for example Connectivity <noreply@esim.example>")
    trusted_proxies: Annotated[tuple[Network, ...], BeforeValidator(networks)] = Field(
        (), description="networks of proxies whose X-Forwarded-For, X-Request-Id and traceparent are believed"
    )
    allowed_hosts: Words = Field((), description="Host names served besides the base URL's; * serves any")
    allowed_origins: Words = Field(
        (), description="origins whose pages may call the API, /mcp and its login from a browser (CORS), as https://app.example"
    )
    upgrade_url: str = Field("", description="where a caller buys a larger tier")
    connect_url: str = Field("", description="where an organisation connects its upstream account")
    limits_free: Annotated[InstanceOf[TierLimits], BeforeValidator(tier_limits(Tier.FREE))] = Field(
        TIERS[Tier.FREE], description="limits of the tier free, any of calls_per_day=, burst_per_second=, burst_size=, ai_calls_per_day="
    )
    limits_pro: Annotated[InstanceOf[TierLimits], BeforeValidator(tier_limits(Tier.PRO))] = Field(
        TIERS[Tier.PRO], description="limits of the tier pro, written alike"
    )
    limits_enterprise: Annotated[InstanceOf[TierLimits], BeforeValidator(tier_limits(Tier.ENTERPRISE))] = Field(
        TIERS[Tier.ENTERPRISE], description="limits of the tier enterprise, written alike"
    )
    burst_limit: bool = Field(True, description="false switches the burst limiter off, for load tests")
    demo: bool | None = Field(None, description="demo data in an empty database; default: on outside production")
    worker: bool | None = Field(None, description="run the worker inside serve; default: on with SQLite")
    drain_seconds: int | None = Field(
        None,
        ge=0,
        le=60,
        description="seconds a server takes requests after SIGTERM, while /health/ready says 503; default: 5 in production, else 0",
    )
    keep_audit_days: int = Field(90, ge=0, le=36_500, description="days that rows of the audit log are kept; 0: for ever")
    keep_answers_days: int = Field(
        0,
        ge=0,
        le=36_500,
        description="days that answers under keys that never expire are kept, at least 30; the keys stay. 0: for ever",
    )
    keep_issuances_days: int = Field(
        0,
        ge=0,
        le=36_500,
        description="days, at least 30, that issuances without an eSIM are kept, once their answers are gone; their keys stay. 0: for ever",
    )
    keep_intents_days: int = Field(
        0, ge=0, le=36_500, description="days that test intents and failed intents are kept, at least 30; their keys stay. 0: for ever"
    )
    keep_events_days: int = Field(
        0, ge=0, le=36_500, description="days that events are kept with their deliveries, at least 30; 0: for ever"
    )
    keep_deliveries_days: int = Field(
        0, ge=0, le=36_500, description="days that deliveries are kept with their attempts, at least 7; 0: for ever"
    )
    keep_call_records_days: int = Field(
        0,
        ge=0,
        le=36_500,
        description="days that call records are kept, at least 62; their ids and the sums that are invoiced stay. 0: for ever",
    )
    delivery_lease_seconds: int = Field(
        60, ge=5, le=600, description="a dead worker's deliveries are taken over after it; under 20 a slow receiver may get one twice"
    )
    metrics_port: int = Field(0, ge=0, le=65535, description="port of GET /metrics for Prometheus; 0: none")
    metrics_host: str = Field("127.0.0.1", description="address of GET /metrics; it has no key, so keep it private")
    build_sha: str = Field("unknown", description="source revision shown by /health; unset in a git checkout: its commit")
    mcp_state_keys: Secret = Field(EMPTY, description="keys that seal MCP request state, new,old; default: derived from the keyring")
    mcp_edge: bool = Field(True, description="false answers every MCP call through the whole SDK, at three times the cost")
    limit_concurrency: int = Field(512, ge=1, description="connections served at once")
    connections_per_network: int = Field(
        64, ge=1, description="of these from one address (IPv6: 64 bits); not counted from this machine and from trusted proxies"
    )
    log: Literal["auto", "json", "off"] = Field("auto", description="request log: people on a terminal, JSON elsewhere")

    @model_validator(mode="after")
    def check(self) -> "Settings":
        """What only holds together."""
        if self.env == "production":
            check_production(self)
        if not self.embedded and not self.store_url.startswith(("postgresql://", "postgres://")):
            raise ValueError("SERVICE_DATABASE_URL must start with postgresql://; leave it out for SQLite in SERVICE_DATA")
        if bool(self.auth_issuer) != bool(self.auth_jwks_url):
            raise ValueError("SERVICE_AUTH_ISSUER and SERVICE_AUTH_JWKS_URL go together; set both or neither")
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
            deliveries=self.keep_deliveries_days,
            call_records=self.keep_call_records_days,
        )

    @property
    def tiers(self) -> Mapping[Tier, TierLimits]:
        """What each tier may use."""
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
        default = DRAIN_SECONDS if self.env == "production" else 0
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
        """The database's address."""
        return self.database_url.get_secret_value() or f"sqlite:///{(self.data / 'service.db').absolute()}"

    @property
    def with_demo(self) -> bool:
        """Demo data goes into an empty database."""
        return self.env != "production" if self.demo is None else self.demo


def check_production(settings: Settings) -> None:
    """Nothing is simulated there, and nothing travels in the clear."""
    names = ("database_url", "secret_keys", "payments_key", "payments_webhook_secret", "smtp_url")
    required: dict[str, SecretStr] = {name: getattr(settings, name) for name in names}
    missing = [PREFIX + name.upper() for name, value in required.items() if not value.get_secret_value()]
    missing += [PREFIX + name.upper() for name in ("base_url", "ocs_url", "mail_from") if not getattr(settings, name)]
    if missing:
        raise ValueError(f"SERVICE_ENV=production needs {', '.join(missing)}; nothing falls back to a simulation there")
    if settings.webhook_allow_nets:
        raise ValueError("SERVICE_WEBHOOK_ALLOW_NETS is for tests; production does not start with it")
    if settings.demo:
        raise ValueError("SERVICE_DEMO is for trying things out; production does not start with it")
    for name in HTTPS_IN_PRODUCTION:
        address: str = getattr(settings, name)
        if name == "model_url" and settings.model_plain_http and is_inside(address):
            continue
        if address and not address.startswith("https://"):
            raise ValueError(f"{PREFIX}{name.upper()} must start with https:// in production; tokens and keys travel over it")


def check_base_url(address: str) -> None:
    """Links, the MCP resource and the allowed Host are made from it. The value is not repeated: it may hold a password."""
    if address and (WEB_ADDRESS.fullmatch(address) is None or not is_readable(address)):
        raise ValueError(
            "SERVICE_BASE_URL must be http(s)://host[:port][/path] without user, query or fragment, for example https://esim.example"
        )


def check_origins(origins: tuple[str, ...]) -> None:
    """They are compared with what browsers send, which is written in one way alone. The value is not repeated: it may hold a password.

    Choice: no wildcard; whose pages may call is named.
    """
    for number, origin in enumerate(origins, 1):
        if ORIGIN.fullmatch(origin) is None or OWN_PORT.fullmatch(origin) is not None:
            raise ValueError(
                "SERVICE_ALLOWED_ORIGINS must be origins as browsers send them: scheme://host[:port] in small letters, without path, last "
                f"slash, wildcard or the scheme's own port, for example https://app.example; entry {number} is none"
            )


def check_mail(settings: Settings) -> None:
    """Where mails go. The address is not repeated: it may hold a password."""
    address = settings.smtp_url.get_secret_value()
    found = SMTP_URL.fullmatch(address)
    if address and (found is None or int(found[1] or 0) > 65535):
        raise ValueError("SERVICE_SMTP_URL must be smtp[s]://[user:password@]host[:port], with the password percent-encoded")
    if settings.mail_from and not MAIL_FROM.fullmatch(settings.mail_from):
        raise ValueError("SERVICE_MAIL_FROM must be an address, or a name and an address in angle brackets")
    if address and not settings.mail_from:
        raise ValueError("SERVICE_SMTP_URL needs SERVICE_MAIL_FROM: mails without a sender are refused everywhere")


def check_upstream(settings: Settings) -> None:
    """An address carries no credential of its own, and a token is of no use without one. The values are not repeated."""
    for name in ("ocs_url", "ocs_statistics_url"):
        address: str = getattr(settings, name)
        if address and WEB_ADDRESS.fullmatch(address) is None:
            raise ValueError(f"{PREFIX}{name.upper()} must be http(s)://host[:port]/path without user, query or fragment")
    if not settings.ocs_url and (settings.ocs_token.get_secret_value() or settings.ocs_statistics_url):
        raise ValueError("SERVICE_OCS_TOKEN and SERVICE_OCS_STATISTICS_URL are of no use without SERVICE_OCS_URL")
    if settings.ocs_url and not re.search(r"/v1/?$", settings.ocs_url):
        raise ValueError("SERVICE_OCS_URL must end in /v1; the other version is reached by changing that segment")
    for name in ("ocs_zone_method", "ocs_zone_key", "ocs_profile_key"):
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,79}", getattr(settings, name)):
            raise ValueError(f"{PREFIX}{name.upper()} must be a name of letters, digits and _")


def check_payments(settings: Settings) -> None:
    """A key without a secret would be paid and never know of it; anything else without a key is of no use. No value is repeated."""
    key, secret = settings.payments_key.get_secret_value(), settings.payments_webhook_secret.get_secret_value()
    if bool(key) != bool(secret):
        raise ValueError("SERVICE_PAYMENTS_KEY and SERVICE_PAYMENTS_WEBHOOK_SECRET go together; set both or neither")
    if key and not PROCESSOR_KEY.fullmatch(key):
        raise ValueError("SERVICE_PAYMENTS_KEY must be a secret or restricted key: sk_test_..., sk_live_..., rk_test_... or rk_live_...")
    if any(not PROCESSOR_SECRET.fullmatch(one) for one in words(secret)):
        raise ValueError("SERVICE_PAYMENTS_WEBHOOK_SECRET must be whsec_..., as the processor shows it for the endpoint; several by comma")
    for name in ("payments_url", "payments_connect_url"):
        address: str = getattr(settings, name)
        if address and WEB_ADDRESS.fullmatch(address) is None:
            raise ValueError(f"{PREFIX}{name.upper()} must be http(s)://host[:port]/path without user, query or fragment")
    if not key and (settings.payments_url or settings.payments_connect_url or settings.payments_client_id):
        raise ValueError("SERVICE_PAYMENTS_URL, _CONNECT_URL and _CLIENT_ID are of no use without SERVICE_PAYMENTS_KEY")


def check_model(settings: Settings) -> None:
    """An address is of no use without a name, nor the others without the address. The values are not repeated."""
    if settings.model_url and WEB_ADDRESS.fullmatch(settings.model_url) is None:
        raise ValueError("SERVICE_MODEL_URL must be http(s)://host[:port]/path without user, query or fragment")
    if settings.model_url.rstrip("/").endswith("/completions"):
        raise ValueError("SERVICE_MODEL_URL must end before /chat/completions, as in https://models.example/v1")
    if bool(settings.model_url) != bool(settings.model_name) or (settings.model_key.get_secret_value() and not settings.model_url):
        raise ValueError("SERVICE_MODEL_URL and SERVICE_MODEL_NAME go together, and SERVICE_MODEL_KEY is of no use without them")
    key = settings.model_key.get_secret_value()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("SERVICE_MODEL_KEY must be printable ASCII, since it is sent in a header")
    if any(not MODEL_NAME.fullmatch(name) for name in settings.model_name):
        raise ValueError("SERVICE_MODEL_NAME must be names of letters, digits and ._:/@+- with at most 100 characters; several by comma")


def check_ca_file(path: Path | None) -> None:
    """It holds certificates, or every call outside would fail."""
    if path is None:
        return
    import ssl  # only where it is set: start-up budget

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = (
            "it has no certificate in PEM form" if isinstance(error, ssl.SSLError) else getattr(error, "strerror", None) or "not a file"
        )
        raise ValueError(f"SERVICE_CA_FILE: {path} cannot be read ({reason})") from None


def is_inside(address: str) -> bool:
    """Whether the host of an address lies in one's own network: a private or loopback address, or a name that no public DNS has."""
    host = (urlsplit(address).hostname or "").rstrip(".")
    try:
        found = ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(OWN_NAMES))
    return found.is_loopback or lies_in(found, RANGES)


def check_history(days: HistoryDays) -> None:
    """What is removed sooner could still be under way, or be asked for by whoever repeats a call."""
    for kind, value in asdict(days).items():
        shortest: int = getattr(SHORTEST, kind)
        if 0 < value < shortest:
            raise ValueError(f"SERVICE_KEEP_{kind.upper()}_DAYS is {value}; use {shortest} or more, or 0 to keep them for ever")
    if days.issuances and not days.answers:
        raise ValueError(
            "SERVICE_KEEP_ISSUANCES_DAYS needs SERVICE_KEEP_ANSWERS_DAYS: an issuance is kept as long as the answer that tells of it"
        )


def check_shared_secrets(settings: Settings) -> None:
    """Whoever guesses one is the bridge or the storefront."""
    for name in SHARED_SECRETS:
        secret: SecretStr = getattr(settings, name)
        length = len(secret.get_secret_value())
        if 0 < length < SHORTEST_SECRET:
            raise ValueError(
                f"{PREFIX}{name.upper()} has {length} characters; use {SHORTEST_SECRET} or more, as from `openssl rand -hex 24`"
            )
    bridge = settings.bridge_webhook_secret.get_secret_value().removeprefix("whsec_")
    if not re.fullmatch(r"[A-Za-z0-9+/_-]*={0,2}", bridge) or len(bridge.rstrip("=")) % 4 == 1:
        raise ValueError(
            "SERVICE_BRIDGE_WEBHOOK_SECRET must be base64, with or without whsec_ before it, as from `openssl rand -base64 24`"
        )


def read_file(path: Path) -> dict[str, str]:
    """NAME=value lines; quotes around a value are dropped, # begins a comment line."""
    values: dict[str, str] = {}
    for line in path.read_text().splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            values[name.strip().removeprefix("export ")] = value.strip().strip("\"'")
    return values


def load_settings(environment: Mapping[str, str], *, env_file: Path | None = None, **overrides: object) -> Settings:
    """Files first, then the environment, then what the command line said."""
    merged: dict[str, str] = {}
    if env_file is not None and env_file.is_file():
        merged.update(read_file(env_file))
    directory = environment.get("SERVICE_SECRETS_DIR")
    if directory:
        try:
            merged.update({path.name.upper(): path.read_text().strip() for path in Path(directory).iterdir() if path.is_file()})
        except (OSError, UnicodeDecodeError) as error:
            raise BadSettings(
                f"SERVICE_SECRETS_DIR: {directory} cannot be read ({getattr(error, 'strerror', None) or 'not text'})"
            ) from None
    merged.update(environment)
    known = set(Settings.model_fields)
    named = {name[len(PREFIX) :].lower(): value for name, value in merged.items() if name.startswith(PREFIX)}
    named.pop("secrets_dir", None)
    unknown = sorted(set(named) - known)
    if unknown:
        raise UnknownSetting(PREFIX + unknown[0].upper())
    values = {name: value for name, value in named.items() if value != ""}
    values.update({name: value for name, value in overrides.items() if value is not None})  # pyright: ignore[reportCallIssue, reportArgumentType]  # overrides are typed values, not texts
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = PREFIX + str(first["loc"][0]).upper() if first["loc"] else ""
        raise BadSettings(f"{name}: {first['msg'].removeprefix('Value error, ')}".removeprefix(": ")) from None
    settings.note_secret_keys_file(None if "SERVICE_SECRET_KEYS" in environment else file_of("SERVICE_SECRET_KEYS", env_file, directory))
    if settings.env == "production":
        refuse_open_files([] if env_file is None else [env_file], directory)
    return settings


def file_of(name: str, env_file: Path | None, directory: str | None) -> Path | None:
    """The file that a setting is read from where the environment does not have it; the secrets directory comes before .env."""
    secrets = [path for path in Path(directory).iterdir() if path.is_file() and path.name.upper() == name] if directory else []
    if secrets:
        return secrets[-1]
    return env_file if env_file is not None and env_file.is_file() and name in read_file(env_file) else None


def refuse_open_files(files: Sequence[Path], directory: str | None) -> None:
    """Whoever may write where production's settings are read from sets its keys."""
    secrets = [] if not directory else [Path(directory), *(path for path in Path(directory).iterdir() if path.is_file())]
    found = [writable_by_others(path, whoever_owns=True) for path in (*files, *secrets) if path.exists()]
    wrong = [each for each in found if each is not None]
    if wrong:
        raise BadSettings(f"{'; '.join(wrong)}. Production reads settings and keys from there")
