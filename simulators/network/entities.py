"""What the simulated network is made of. Times are Unix seconds, money is whole micro-euro, data is bytes.

Plain mutable records: rules are in charging, packages and simulation, wire names in methods.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

LineStatus = Literal["ACTIVE", "INACTIVE", "SUSPENDED", "DISCONNECTED", "PENDING", "END_OF_LIFE"]
MOC, MTC, MO_SMS, MT_SMS, DATA, MOC_VOIP, MTC_VOIP = 1, 15, 21, 22, 33, 40, 41
MICRO_EURO = 1_000_000
MEBIBYTE = 1 << 20
DAY_SECONDS = 86_400
UNLIMITED_BITRATE = "UNLIMITED"
INVALID_REQUEST = 2
NOT_FOUND = 6
INVALID_RESELLER = 10
NOT_VISIBLE = 11
END_OF_LIFE = 17
ALREADY_EXISTS = 4
NOT_POSSIBLE = 14
UNKNOWN_REQUEST = 1
NO_API_ACCOUNT, ADDRESS_NOT_ALLOWED = 8, 9


class NetworkRefusal(Exception):
    """The network says no: a status code of the wire, free text, and for some methods a payload."""

    def __init__(self, code: int, message: str, payload: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.payload = code, message, payload


@dataclass(slots=True)
class GreenZone:
    """What a line may still use when its data is gone."""

    id: int
    name: str
    max_mb: int
    throttle_kbps: int


@dataclass(slots=True)
class PushTarget:
    """Where a reseller's notifications go; an empty URL is not called. `thresholds` are percentages of a package."""

    usage_url: str = ""
    esim_url: str = ""
    location_url: str = ""
    thresholds: tuple[int, ...] = (80, 100)


@dataclass(slots=True)
class Reseller:
    """A reseller; `parent_id` -1 is the top."""

    id: int
    name: str
    parent_id: int
    balance: int
    relay_gy: bool
    relay_calls: bool
    relay_location: bool
    relay_voip: bool
    mobile_plan_id: int
    buy_tariff_id: int
    voip_plan_id: int
    contact: dict[str, str]
    green_zone: GreenZone | None = None
    push: PushTarget = field(default_factory=PushTarget)
    single_counter: bool = False


@dataclass(slots=True)
class ResellerAccount:
    id: int
    reseller_id: int
    name: str
    balance: int
    package_only: bool
    steering_list_id: int | None = None
    green_zone: GreenZone | None = None


class ThrottleThreshold(NamedTuple):
    """At this percentage of the volume, this speed."""

    percent: int
    kbps: int


@dataclass(slots=True)
class PackageTemplate:
    """A prepaid package template; None limits are absent on the wire. Periodicity: 0 daily, 1 weekly, 2 monthly."""

    id: int
    name: str
    reseller_id: int
    zone_id: int
    sponsor_id: int
    period_days: int
    data_bytes: int | None = None
    moc_seconds: int | None = None
    mtc_seconds: int | None = None
    mo_sms: int | None = None
    mt_sms: int | None = None
    destination_id: int | None = None
    cost: int = 0
    priority: int = 1
    deleted: bool = False
    ui_visible: bool = False
    ui_start: int | None = None
    ui_end: int | None = None
    esim_sponsor: int | None = None
    throttling: bool = False
    throttles: tuple[ThrottleThreshold | None, ...] = (None, None, None, None)
    throttling_error_action: int | None = None
    recurring: bool = False
    periodicity: int | None = None
    frequency: int | None = None
    occurrences: int | None = None
    carry_over: bool = False
    single_counter: bool = False


USED_COUNTERS = {
    **{DATA: "data_used", MOC: "moc_used", MOC_VOIP: "voip_used", MTC: "mtc_used", MTC_VOIP: "mtc_used"},
    **{MO_SMS: "mo_sms_used", MT_SMS: "mt_sms_used"},
}


@dataclass(slots=True)
class Package:
    """A package on a line. Limits None: that kind of use is not in it."""

    id: int
    line_id: int
    template_id: int
    template_name: str
    priority: int
    zone_id: int
    destination_id: int | None
    data_limit: int | None
    moc_limit: int | None
    mtc_limit: int | None
    mo_sms_limit: int | None
    mt_sms_limit: int | None
    period_days: int
    cost: int
    assigned: int
    activated: int | None = None
    expires: int | None = None
    active: bool = True
    data_used: int = 0
    moc_used: int = 0
    mtc_used: int = 0
    voip_used: int = 0
    mo_sms_used: int = 0
    mt_sms_used: int = 0
    series_id: int | None = None
    reseller_cost: int = 0
    parent_cost: int = 0
    notified: frozenset[int] = frozenset()
    """Thresholds that were crossed already: the kind of use times 1000 plus the percentage."""
    throttled_kbps: int | None = None
    history: list[str] = field(default_factory=list[str])
    carry_from: int | None = None
    """The package whose leftover comes over when this one starts; None once that is done."""

    def in_date(self, at: int) -> bool:
        """Whether it is not blocked, has begun or has no date yet, and has not expired, at `at` (Unix seconds)."""
        return self.active and (self.activated is None or self.activated <= at) and (self.expires is None or at < self.expires)

    def counter(self, usage_type: int) -> tuple[int | None, int]:
        """Limit and use of a kind. Choice: outgoing calls over IP have their own used counter but share the limit of outgoing calls."""
        if usage_type == DATA:
            return self.data_limit, self.data_used
        if usage_type in (MOC, MOC_VOIP):
            return self.moc_limit, self.moc_used + self.voip_used
        if usage_type in (MTC, MTC_VOIP):
            return self.mtc_limit, self.mtc_used
        if usage_type == MO_SMS:
            return self.mo_sms_limit, self.mo_sms_used
        return self.mt_sms_limit, self.mt_sms_used

    def units_left(self, usage_type: int) -> int:
        """Units of a kind of use that remain; 0 when this kind is not in the package."""
        limit, used = self.counter(usage_type)
        return max(0, limit - used) if limit is not None else 0

    def count_usage(self, usage_type: int, quantity: int) -> None:
        name = USED_COUNTERS[usage_type]
        setattr(self, name, getattr(self, name) + quantity)


@dataclass(slots=True)
class PackageSeries:
    """A recurring package on a line. `start` None: begins with the first use of its first package."""

    id: int
    line_id: int
    template_id: int
    template_name: str
    start: int | None
    periodicity: int
    frequency: int
    occurrences: int | None
    carry_over: bool
    created: int = 0
    last_created: int | None = None
    active: bool = True
    next_index: int = 0
    """Which repetition, counted from the start, is created next; repetitions missed while stopped are skipped."""


@dataclass(slots=True)
class ImsiRow:
    """An IMSI and ICCID a line has or had."""

    id: int
    imsi: str
    iccid: str
    start: int
    end: int | None = None


@dataclass(slots=True)
class NumberRow:
    """A phone number a line has or had; `real` when it was assigned, not internal."""

    id: int
    number: str
    start: int
    real: bool = False
    end: int | None = None


@dataclass(slots=True)
class StatusRow:
    """A status a line has or had."""

    id: int
    status: LineStatus
    start: int
    end: int | None = None


@dataclass(slots=True)
class ProviderRow:
    """What the SIM's provider says of its profile; the newest is last here and first on the wire."""

    status: str
    start: int
    profile_type: str
    modification: str = "Executed-Success"
    end: int | None = None


@dataclass(slots=True)
class Sim:
    """The card or profile of a line."""

    id: int
    esim: bool
    sponsor_id: int
    status: Literal["FREE", "AFFECTED"]
    smdp: str
    activation_code: str
    pin1: str
    puk1: str
    pin2: str
    puk2: str
    eid: str
    affected_at: int | None = None
    confirmation_code: str | None = None
    provider: list[ProviderRow] = field(default_factory=list[ProviderRow])


@dataclass(slots=True)
class Sighting:
    at: int
    mcc: str
    mnc: str
    lac: int
    cell_id: int
    imei: str
    rat: str


class Cdr(NamedTuple):
    """One call record: bytes, seconds or messages; costs in micro-euro."""

    line_id: int
    session: str
    at: int
    usage_type: int
    account_id: int
    network_id: int
    mcc: str
    mnc: str
    quantity: int
    in_package: int
    package_id: int | None
    reseller_cost: int
    reseller_rule_id: int | None
    subscriber_cost: int
    subscriber_rule_id: int | None
    account_charged: bool
    lac: int
    cell_id: int
    rat: str
    imei: str
    other_party: str | None = None


class NetworkEvent(NamedTuple):
    """One signalling event; `code` is a command or operation (ULR, UpdateLocation, CCR-I, ...)."""

    at: int
    section: Literal["map", "s6a", "gy"]
    code: str
    network_id: int
    mcc: str
    mnc: str
    result: str
    session: str
    used_bytes: int = 0


class BalanceChange(NamedTuple):
    """A change of a balance by hand or by charging, in micro-euro."""

    at: int
    owner: Literal["reseller", "account", "line"]
    owner_id: int
    amount: int
    balance: int
    description: str


class Persona(NamedTuple):
    """How a line lives; drawn once from the seed. Probabilities per day."""

    kind: Literal["traveller", "commuter", "heavy", "tracker", "dormant", "stock"]
    home_iso2: str
    travel_iso2: tuple[str, ...]
    active_share: float
    sessions: float
    session_bytes: int
    travel_share: float
    calls: float
    messages: float


@dataclass(slots=True)
class Line:
    id: int
    account_id: int
    reseller_id: int
    batch_id: str | None
    name: str | None
    email: str | None
    phone: str | None
    company: str | None
    balance: int
    use_account: bool
    sim: Sim
    persona: Persona
    imsis: list[ImsiRow]
    numbers: list[NumberRow]
    multi_imsis: list[ImsiRow]
    statuses: list[StatusRow]
    own_number: str
    """The internal number that affectSubscriberFakePhoneNumber restores."""
    profile_id: int
    allowed_data: bool = True
    allowed_moc: bool = True
    allowed_mtc: bool = True
    allowed_mo_sms: bool = True
    steering_list_id: int | None = None
    mobile_plan_id: int | None = None
    voip_plan_id: int | None = None
    bitrate: str = UNLIMITED_BITRATE
    throttled: bool = False
    """The bitrate comes from a package's threshold, not from hlrSetBitrate."""
    activated_at: int | None = None
    last_usage_at: int | None = None
    first_usage_at: int | None = None
    sighting: Sighting | None = None
    green_bytes: int = 0
    green_started: int | None = None
    green_reset: int | None = None
    green_updated: int | None = None
    packages: list[Package] = field(default_factory=list[Package])
    series: list[PackageSeries] = field(default_factory=list[PackageSeries])
    cdrs: list[Cdr] = field(default_factory=list[Cdr])
    """Oldest first."""
    events: list[NetworkEvent] = field(default_factory=list[NetworkEvent])
    """Oldest first."""

    @property
    def status(self) -> LineStatus:
        return self.statuses[-1].status

    @property
    def imsi(self) -> str:
        return self.imsis[-1].imsi

    @property
    def iccid(self) -> str:
        return self.imsis[-1].iccid

    @property
    def number(self) -> str:
        return self.numbers[-1].number


class NetworkToken(NamedTuple):
    value: str
    reseller_id: int
    addresses: tuple[str, ...] = ()
    """Allowed client addresses; empty allows all."""
