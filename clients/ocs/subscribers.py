"""A line: its histories, SIM, radio state and counters."""

import re
from typing import Annotated, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.link import OcsCalls, SubscriberIdentifier, SubscriberSearchKey, flat_subscriber, given_members, nested_subscriber
from clients.ocs.wire_schema import (
    AnswerShape,
    Json,
    UnreadableAnswer,
    Utc,
    WireId,
    keeps_unknown,
    parse_nothing,
    parse_record,
    parse_record_or_none,
    parse_rows,
    parse_text,
    wire_integer,
)
from registry.free_text import FreeText


@keeps_unknown
class ImsiRow(TypedDict, total=False):
    """One IMSI and ICCID the line has or had."""

    id: int
    subscriberId: int
    imsi: str
    iccid: str
    startDate: Utc
    endDate: Annotated[str, Field(description="UTC; absent while current")]


@keeps_unknown
class PhoneNumberRow(TypedDict, total=False):
    """One phone number the line has or had."""

    id: int
    subscriberId: int
    phoneNumber: Annotated[str, Field(description="Digits without plus")]
    startDate: Utc
    endDate: Annotated[str, Field(description="UTC; absent while current")]


@keeps_unknown
class MultiImsiRow(TypedDict, total=False):
    """One sponsor IMSI of the line."""

    id: int
    subscriberId: int
    imsi: str
    startDate: Utc


@keeps_unknown
class StatusRow(TypedDict, total=False):
    """One status the line has or had."""

    id: int
    subscriberId: int
    startDate: Utc
    endDate: Annotated[str, Field(description="UTC; absent while current")]
    status: Annotated[str, Field(description="Active, Inactive, Suspended, Disconnected, Pending or End of life")]


@keeps_unknown
class Sim(TypedDict, total=False):
    """The SIM of a line. The codes are secrets."""

    id: WireId
    subscriberId: int
    esim: bool
    status: Annotated[str, Field(description="FREE or AFFECTED")]
    affectationDateUtc: Utc
    pin1: str
    puk1: str
    pin2: str
    puk2: str
    smdpServer: str
    activationCode: str
    confirmationCode: str


@keeps_unknown
class NetworkInfo(TypedDict, total=False):
    """Where the line was seen last."""

    subscriberid: int
    time: Utc
    lastMcc: int
    lastMnc: int
    lastCellId: int
    lastLac: int
    lastImei: str
    lastRat: Annotated[str, Field(description="Radio access, such as 4G - LTE")]


@keeps_unknown
class GreenZone(TypedDict, total=False):
    """A zone with a fair-use volume."""

    greenZoneId: int
    greenZoneName: FreeText
    maxVolumeMB: Annotated[int, Field(description="MB")]
    throttlingKbs: Annotated[int, Field(description="kbit/s")]


@keeps_unknown
class GreenZoneCounter(TypedDict, total=False):
    """How much of the fair-use volume a line has used."""

    subscriberId: int
    greenZoneId: int
    greenZoneName: FreeText
    volumeOnGZ: Annotated[int, Field(description="Bytes")]
    startDateUTC: Utc
    lastResetDate: Utc
    lastUpdateDate: Utc
    accountGZ: GreenZone
    resellerGZ: GreenZone


@keeps_unknown
class SubscriberFields(TypedDict, total=False):
    """A line as the network knows it, but for its SIM."""

    subscriberId: WireId
    accountId: WireId
    account: FreeText
    resellerId: WireId
    reseller: FreeText
    batchId: FreeText
    subscriberName: FreeText
    email: FreeText
    prepaid: bool
    useAccountForCharging: Annotated[bool, Field(description="Whether usage outside packages is charged on the account")]
    balance: Annotated[float, Field(description="EUR, never negative")]
    activationDate: Utc
    lastUsageDate: Utc
    allowedMoc: bool
    allowedMtc: bool
    allowedData: bool
    allowedMosms: bool
    allowedMtsms: bool
    lastMcc: int
    lastMnc: int
    steeringListId: int
    throttlingLimit: Annotated[int, Field(description="kbit/s applied at present")]
    imsiList: list[ImsiRow]
    phoneNumberList: list[PhoneNumberRow]
    multiImsi: list[MultiImsiRow]
    status: list[StatusRow]
    networkInfo: NetworkInfo
    greenZoneCounter: GreenZoneCounter


@keeps_unknown
class Subscriber(SubscriberFields, total=False):
    """A line as the network knows it."""

    sim: Sim


@keeps_unknown
class SubscriberList(TypedDict, total=False):
    """Lines that match; when `hasMore` is true the rest can be reached by a narrower search only."""

    subscriberList: list[Subscriber]
    hasMore: bool
    nbFound: WireId


@keeps_unknown
class LineListHead(TypedDict, total=False):
    """The same without the lines, which were looked at before."""

    hasMore: bool
    nbFound: WireId


@keeps_unknown
class ProviderStatus(TypedDict, total=False):
    """One step in the life of an eSIM profile, as its server reported it."""

    simId: WireId
    status: Annotated[str, Field(description="Open set, such as Released, Downloaded, Installed, Enable")]
    start: Utc
    end: Annotated[str, Field(description="UTC; absent while current")]
    profileType: str
    statusModification: Annotated[str, Field(description="Open set, such as Executed-Success")]


@keeps_unknown
class Location(TypedDict, total=False):
    """A position estimated from the radio cell."""

    latitude: Annotated[float, Field(description="Degrees")]
    longitude: Annotated[float, Field(description="Degrees")]
    accuracy: Annotated[int, Field(description="Metres; half of the positions lie within")]
    dateTime: Annotated[str, Field(description="UTC, when the line was seen there")]


SUBSCRIBER_SHAPE = AnswerShape(Subscriber, required=("subscriberId",))
LINE_LIST_SHAPE = AnswerShape(LineListHead)


def parse_line_list(value: Json) -> SubscriberList:
    """Reads a list of lines that are fit already; a missing one is empty."""
    answer = LINE_LIST_SHAPE.fit({} if value is None else value)
    rows = answer.setdefault("subscriberList", [])
    if rows is None:
        answer["subscriberList"] = []
    elif not isinstance(rows, list):
        raise UnreadableAnswer("a list is expected")
    return cast("SubscriberList", answer)


PROVIDER_STATUS_SHAPE = AnswerShape(ProviderStatus)
GREEN_ZONE_COUNTER_SHAPE = AnswerShape(GreenZoneCounter)
LOCATION_SHAPE = AnswerShape(Location)


class SubscriberCalls(OcsCalls):
    """What concerns one line, or a search for lines."""

    async def get_single_subscriber(
        self,
        value: int | str,
        *,
        by: SubscriberIdentifier = "subscriberId",
        with_sim_info: bool | None = None,
        only_subs_info: bool | None = None,
        with_gz_counter: bool | None = None,
    ) -> Subscriber:
        """One line by an exact, current identifier. The SIM is included unless `with_sim_info` is False."""
        params = given_members(withSimInfo=with_sim_info, onlySubsInfo=only_subs_info, withGzCounter=with_gz_counter)
        return await self._link.read("getSingleSubscriber", {by: value, **params}, parse_record(SUBSCRIBER_SHAPE))

    async def list_subscriber(self, value: int | str, *, by: SubscriberSearchKey = "accountId") -> SubscriberList:
        """The lines of an account, or those whose identifiers begin so; the rest is out of reach when `hasMore` is true.

        There may be thousands: other tasks get a turn while they are read.
        """
        return await self._link.read("listSubscriber", {by: value}, parse_line_list, fit=SUBSCRIBER_SHAPE.fit)

    async def affect_real_phone_number(self, subscriber_id: int, phone_number: int | str) -> None:
        """Give a line a real number: digits without plus."""
        await self._link.write("affectSubscriberRealPhoneNumber", nested_subscriber(subscriber_id, phoneNumber=phone_number), parse_nothing)

    async def affect_fake_phone_number(self, subscriber_id: int) -> None:
        """Give a line its own internal number back."""
        await self._link.write("affectSubscriberFakePhoneNumber", flat_subscriber(subscriber_id), parse_nothing)

    async def get_sim_provider_status(self, sim_id: int) -> list[ProviderStatus]:
        """The life of an eSIM profile, newest first; empty when the provider reported none."""
        return await self._link.read("getSimProviderStatus", sim_id, parse_rows(PROVIDER_STATUS_SHAPE))

    async def modify_balance(self, subscriber_id: int, amount: float, *, set_balance: bool = False, description: str | None = None) -> None:
        """Add to a line's balance (EUR), or set it; a result below 0 becomes 0."""
        params = nested_subscriber(subscriber_id, amount=amount, setBalance=set_balance or None, description=description)
        await self._link.write("modifySubscriberBalance", params, parse_nothing)

    async def hlr_set_bitrate(self, imsi: str, limit: str) -> None:
        """Limit the speed of a line: KB_32 to KB_102400, or UNLIMITED."""
        await self._link.write("hlrSetBitrate", {"imsi": imsi, "limit": limit}, parse_nothing)

    async def hlr_get_bitrate(self, imsi: str) -> str:
        """The speed limit of a line: KB_32 to KB_102400, or UNLIMITED."""
        return await self._link.read("hlrGetBitrate", {"imsi": imsi}, parse_text)

    async def move_range(
        self, kind: str, first: str, last: str, *, source: int, destination: int, destination_profile: int | None = None
    ) -> int:
        """Move a range (`kind` IMSI or ICCID, both ends included) to another account; how many were moved.

        With a network profile, which another reseller's account needs, version 2 of the wire is used.
        """
        params = given_members(
            rangeType=kind,
            rangeStart=first,
            rangeEnd=last,
            srcAccountId=source,
            destAccount=destination,
            destNetworkProfileId=destination_profile,
        )
        version = "v1" if destination_profile is None else "v2"
        return await self._link.write("moveSubscriberRangeToAccount", params, wire_integer, version=version)

    async def modify_contact_info(
        self,
        subscriber_id: int,
        *,
        name: str | None = None,
        phone: str | None = None,
        mail: str | None = None,
        company: str | None = None,
    ) -> None:
        """Change the contact of a line; what is None stays."""
        params = nested_subscriber(subscriber_id, name=name, phone=phone, mail=mail, company=company)
        await self._link.write("modifySubscriberContactInfo", params, parse_nothing)

    async def modify_status(self, subscriber_id: int, new_status: str) -> None:
        """ACTIVE, INACTIVE, SUSPENDED, DISCONNECTED or END_OF_LIFE, which is final."""
        await self._link.write("modifySubscriberStatus", nested_subscriber(subscriber_id, newStatus=new_status), parse_nothing)

    async def set_traffic_restrictions(self, subscriber_id: int, *, data: bool, moc: bool, mtc: bool, sms_mo: bool) -> None:
        """What a line may do; all four are always sent."""
        params = nested_subscriber(subscriber_id, dataAllowed=data, mocAllowed=moc, mtcAllowed=mtc, smsMoAllowed=sms_mo)
        await self._link.write("setSubscriberTrafficRestrictions", params, parse_nothing)

    async def modify_steering_list(self, subscriber_id: int, steering_list_id: int | None) -> None:
        """Set the steering list of a line, or remove it; it takes effect when pushed."""
        await self._link.write(
            "modifySubscriberSteeringList", nested_subscriber(subscriber_id, steeringListId=steering_list_id), parse_nothing
        )

    async def push_steering(self, subscriber_id: int) -> None:
        """Send the preferred networks to the SIM by SMS."""
        await self._link.write("pushSteeringToSubs", flat_subscriber(subscriber_id), parse_nothing)

    async def clean_all_packages(self, subscriber_id: int) -> None:
        """Remove every package and every series of a line."""
        await self._link.write("cleanSubscriberAllPackages", flat_subscriber(subscriber_id), parse_nothing)

    async def reset_gz_counter(self, subscriber_id: int) -> GreenZoneCounter | None:
        """Set the fair-use volume to 0; servers of before February 2026 answer with the counter."""
        return await self._link.write("resetSubsGzCounter", flat_subscriber(subscriber_id), parse_record_or_none(GREEN_ZONE_COUNTER_SHAPE))

    async def get_location(self, subscriber_id: int) -> Location | None:
        """Where a line was seen last, if that is known."""
        parse = parse_record_or_none(LOCATION_SHAPE)
        return await self._link.read("getSubscriberLocation", flat_subscriber(subscriber_id), parse, key="subscriberLocation")

    async def get_location_by_cell_id(
        self, *, radio: str, mcc: int, mnc: int, lac: int, cell_id: int | None = None, signal_strength: int | None = None
    ) -> Location | None:
        """Where a radio cell stands (`radio` 2G, 3G, 4G, 5G or NB-IoT; signal in dBm); coarse without a cell id."""
        params = given_members(radioType=radio, mcc=mcc, mnc=mnc, lac=lac, cellId=cell_id, signalStrength=signal_strength)
        parse = parse_record_or_none(LOCATION_SHAPE)
        return await self._link.read("getSubscriberLocationByCellId", params, parse, key="subscriberLocation")

    async def change_sim_status(self, sim_id: int, new_status: str) -> None:
        """Affected or Free; a freed profile that was downloaded cannot be downloaded again."""
        await self._link.write("changeSimStatus", {"simId": sim_id, "newStatus": new_status}, parse_nothing)


LITERAL_ESCAPE = re.compile(r"\\(?=u[0-9A-Fa-f]{4})")


class MessageCalls(OcsCalls):
    """What is sent to a line."""

    async def send_mt_sms(self, text: str, *, sender_id: str, imsi: str | None = None, msisdn: str | None = None) -> None:
        """Send one SMS to the line with this current IMSI or number; delivery is not reported. Never repeat it blindly."""
        params = given_members(imsi=imsi, msisdn=msisdn, text=escape_sms_text(text), senderId=sender_id)
        await self._link.write("sendMtSms", params, parse_nothing)


def escape_sms_text(text: str) -> str:
    r"""Every character above U+007F as a literal \uXXXX, surrogate pairs for those above U+FFFF.

    Choice: all of them, since whether the server takes plain UTF-8 is documented both ways. A backslash that the text itself
    has before u and four hexadecimal digits is escaped, too, or the receiver would see another text.
    """
    return "".join(character if character < "\x80" else _utf16_escapes(character) for character in LITERAL_ESCAPE.sub(r"\\u005C", text))


def _utf16_escapes(character: str) -> str:
    pairs = character.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{pairs[start : start + 4]}" for start in range(0, len(pairs), 4))
