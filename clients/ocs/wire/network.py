"""Networks, location zones, destination lists, network profiles."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.values import Named, WireId, keeps_unknown


@keeps_unknown
class MccMnc(TypedDict, total=False):
    """One network code."""

    mcc: str
    mnc: str


@keeps_unknown
class Operator(TypedDict, total=False):
    """A mobile network."""

    networkId: WireId
    continent: str
    countryCode: Annotated[str, Field(description="Dial code")]
    countryName: str
    countryIso2: Annotated[str, Field(description="Lower case")]
    utcOffset: Annotated[str, Field(description="Such as +01:00")]
    operatorName: str
    mccMncs: list[MccMnc]
    tadigs: list[str]


@keeps_unknown
class DetailedLocationZone(TypedDict, total=False):
    """A location zone with its networks."""

    zoneId: WireId
    zoneName: str
    reseller: Named
    operators: list[Operator]


@keeps_unknown
class DetailedDestinationList(TypedDict, total=False):
    """Called numbers by prefix."""

    listId: WireId
    listName: str
    reseller: Named
    prefixes: list[str]


@keeps_unknown
class DestinationPrefixes(TypedDict, total=False):
    """The prefixes of one destination list."""

    listId: WireId
    listName: str
    resellerId: WireId
    prefixes: list[str]


@keeps_unknown
class NetworkProfile(TypedDict, total=False):
    """The networks a reseller may put into zones of one sponsor."""

    id: WireId
    name: str
    sponsorId: WireId
    sponsorName: str
    resellerId: WireId
    resellerName: str
    allowedListId: int


@keeps_unknown
class NewLocationZone(TypedDict, total=False):
    """A location zone just made; `Id` is spelled so."""

    Id: WireId
    name: str
