"""A line: its histories, SIM, radio state and counters."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.values import Utc, WireId, keeps_unknown


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
    greenZoneName: str
    maxVolumeMB: Annotated[int, Field(description="MB")]
    throttlingKbs: Annotated[int, Field(description="kbit/s")]


@keeps_unknown
class GreenZoneCounter(TypedDict, total=False):
    """How much of the fair-use volume a line has used."""

    subscriberId: int
    greenZoneId: int
    greenZoneName: str
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
    account: str
    resellerId: WireId
    reseller: str
    batchId: str
    subscriberName: str
    email: str
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
