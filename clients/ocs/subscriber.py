"""Lines: search, money, radio, status, steering."""

from clients.ocs.link import OcsLink
from clients.ocs.numbers import integer
from clients.ocs.params import Identifier, SearchKey, flat, given, nested
from clients.ocs.shape import Shape, nothing, perhaps, record, rows, text
from clients.ocs.wire.subscriber import GreenZoneCounter, Location, ProviderStatus, Subscriber, SubscriberList

HISTORIES = ("imsiList", "phoneNumberList", "multiImsi", "status")
IDS = ("subscriberId", "accountId", "resellerId")
LINE = Shape(
    ids=IDS,
    required=("subscriberId",),
    histories=HISTORIES,
    objects={"sim": Shape(ids=("id",)), "networkInfo": Shape(), "greenZoneCounter": Shape()},
)
LINES = Shape(ids=("nbFound",), lists={"subscriberList": LINE})
PROVIDER_STATUS = Shape(ids=("simId",))


class SubscriberCalls:
    """What concerns one line, or a search for lines."""

    def __init__(self, link: OcsLink) -> None:
        self._link = link

    async def get_single_subscriber(
        self,
        value: int | str,
        *,
        by: Identifier = "subscriberId",
        with_sim_info: bool | None = None,
        only_subs_info: bool | None = None,
        with_gz_counter: bool | None = None,
    ) -> Subscriber:
        """One line by an exact, current identifier. The SIM is included unless `with_sim_info` is False."""
        params = given(withSimInfo=with_sim_info, onlySubsInfo=only_subs_info, withGzCounter=with_gz_counter)
        return await self._link.read("getSingleSubscriber", {by: value, **params}, record(Subscriber, LINE))

    async def list_subscriber(self, value: int | str, *, by: SearchKey = "accountId") -> SubscriberList:
        """The lines of an account, or those whose identifiers begin so; the rest is out of reach when `hasMore` is true."""
        return await self._link.read("listSubscriber", {by: value}, record(SubscriberList, LINES, absent=True))

    async def affect_real_phone_number(self, subscriber_id: int, phone_number: int | str) -> None:
        """Give a line a real number: digits without plus."""
        await self._link.write("affectSubscriberRealPhoneNumber", nested(subscriber_id, phoneNumber=phone_number), nothing)

    async def affect_fake_phone_number(self, subscriber_id: int) -> None:
        """Give a line its own internal number back."""
        await self._link.write("affectSubscriberFakePhoneNumber", flat(subscriber_id), nothing)

    async def get_sim_provider_status(self, sim_id: int) -> list[ProviderStatus]:
        """The life of an eSIM profile, newest first; empty when the provider reported none."""
        return await self._link.read("getSimProviderStatus", sim_id, rows(ProviderStatus, PROVIDER_STATUS))

    async def modify_balance(self, subscriber_id: int, amount: float, *, set_balance: bool = False, description: str | None = None) -> None:
        """Add to a line's balance (EUR), or set it; a result below 0 becomes 0."""
        params = nested(subscriber_id, amount=amount, setBalance=set_balance or None, description=description)
        await self._link.write("modifySubscriberBalance", params, nothing)

    async def hlr_set_bitrate(self, imsi: str, limit: str) -> None:
        """Limit the speed of a line: KB_32 to KB_102400, or UNLIMITED."""
        await self._link.write("hlrSetBitrate", {"imsi": imsi, "limit": limit}, nothing)

    async def hlr_get_bitrate(self, imsi: str) -> str:
        """The speed limit of a line: KB_32 to KB_102400, or UNLIMITED."""
        return await self._link.read("hlrGetBitrate", {"imsi": imsi}, text)

    async def move_range(
        self, kind: str, first: str, last: str, *, source: int, destination: int, destination_profile: int | None = None
    ) -> int:
        """Move a range (`kind` IMSI or ICCID, both ends included) to another account; how many were moved.

        With a network profile, which another reseller's account needs, version 2 of the wire is used.
        """
        params = given(
            rangeType=kind,
            rangeStart=first,
            rangeEnd=last,
            srcAccountId=source,
            destAccount=destination,
            destNetworkProfileId=destination_profile,
        )
        version = "v1" if destination_profile is None else "v2"
        return await self._link.write("moveSubscriberRangeToAccount", params, integer, version=version)

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
        params = nested(subscriber_id, name=name, phone=phone, mail=mail, company=company)
        await self._link.write("modifySubscriberContactInfo", params, nothing)

    async def modify_status(self, subscriber_id: int, new_status: str) -> None:
        """ACTIVE, INACTIVE, SUSPENDED, DISCONNECTED or END_OF_LIFE, which is final."""
        await self._link.write("modifySubscriberStatus", nested(subscriber_id, newStatus=new_status), nothing)

    async def set_traffic_restrictions(self, subscriber_id: int, *, data: bool, moc: bool, mtc: bool, sms_mo: bool) -> None:
        """What a line may do; all four are always sent."""
        params = nested(subscriber_id, dataAllowed=data, mocAllowed=moc, mtcAllowed=mtc, smsMoAllowed=sms_mo)
        await self._link.write("setSubscriberTrafficRestrictions", params, nothing)

    async def modify_steering_list(self, subscriber_id: int, steering_list_id: int | None) -> None:
        """Set the steering list of a line, or remove it; it takes effect when pushed."""
        await self._link.write("modifySubscriberSteeringList", nested(subscriber_id, steeringListId=steering_list_id), nothing)

    async def push_steering(self, subscriber_id: int) -> None:
        """Send the preferred networks to the SIM by SMS."""
        await self._link.write("pushSteeringToSubs", flat(subscriber_id), nothing)

    async def clean_all_packages(self, subscriber_id: int) -> None:
        """Remove every package and every series of a line."""
        await self._link.write("cleanSubscriberAllPackages", flat(subscriber_id), nothing)

    async def reset_gz_counter(self, subscriber_id: int) -> GreenZoneCounter | None:
        """Set the fair-use volume to 0; servers of before February 2026 answer with the counter."""
        return await self._link.write("resetSubsGzCounter", flat(subscriber_id), perhaps(GreenZoneCounter, Shape()))

    async def get_location(self, subscriber_id: int) -> Location | None:
        """Where a line was seen last, if that is known."""
        parse = perhaps(Location, Shape())
        return await self._link.read("getSubscriberLocation", flat(subscriber_id), parse, key="subscriberLocation")

    async def get_location_by_cell_id(
        self, *, radio: str, mcc: int, mnc: int, lac: int, cell_id: int | None = None, signal_strength: int | None = None
    ) -> Location | None:
        """Where a radio cell stands (`radio` 2G, 3G, 4G, 5G or NB-IoT; signal in dBm); coarse without a cell id."""
        params = given(radioType=radio, mcc=mcc, mnc=mnc, lac=lac, cellId=cell_id, signalStrength=signal_strength)
        parse = perhaps(Location, Shape())
        return await self._link.read("getSubscriberLocationByCellId", params, parse, key="subscriberLocation")

    async def change_sim_status(self, sim_id: int, new_status: str) -> None:
        """Affected or Free; a freed profile that was downloaded cannot be downloaded again."""
        await self._link.write("changeSimStatus", {"simId": sim_id, "newStatus": new_status}, nothing)
