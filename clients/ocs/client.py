"""The charging system, seen with one token; one link per token and owner, all over one outbound client."""

from collections import OrderedDict
from hashlib import scrypt, sha256
from weakref import WeakValueDictionary

import anyio

from clients.http import Outbound, OutboundLimits
from clients.ocs.link import OcsLink, OcsSettings
from clients.ocs.packages import PackageCalls
from clients.ocs.places import Places, TokenPlaces
from clients.ocs.resellers import ResellerCalls
from clients.ocs.statistics import StatisticsCalls
from clients.ocs.subscribers import MessageCalls, SubscriberCalls
from clients.ocs.tariffs import TariffCalls
from clients.ocs.templates import TemplateCalls
from clients.ocs.zones import ZoneCalls
from clients.outside_system import BREAKER_LEAST_FAILURES, WAITING_LIMIT, OutsideSystem
from registry.clock import Clock
from registry.limit_lease import LimitLease
from registry.shared_limits import PlaceCount


class Ocs:
    """The calls of the charging system for one token, by noun. Every call waits for the network and raises OcsError or a class of it."""

    def __init__(self, link: OcsLink) -> None:
        self.link = link
        self.reseller = ResellerCalls(link)
        self.subscriber = SubscriberCalls(link)
        self.packages = PackageCalls(link)
        self.templates = TemplateCalls(link)
        self.tariffs = TariffCalls(link)
        self.statistics = StatisticsCalls(link)
        self.messages = MessageCalls(link)
        self.zones = ZoneCalls(link)


TOKENS_LIMIT = 1000


class OcsPool:
    """Hands out the client of a token. Of more than `TOKENS_LIMIT` clients the one that was used longest ago is dropped."""

    def __init__(
        self, outbound: Outbound, settings: OcsSettings, clock: Clock, *, most_waiting: int = WAITING_LIMIT, lease: LimitLease | None = None
    ) -> None:
        """`most_waiting`: requests that may wait for the system at once. `lease`: shares the places of a token with other processes."""
        self.system = OutsideSystem(
            "charging_system", clock, most_waiting=most_waiting, least_failures=min(BREAKER_LEAST_FAILURES, settings.concurrency)
        )
        self._outbound = outbound
        self._settings = settings
        self._clock = clock
        self._lease = lease
        self._long_answers = anyio.Lock()
        self._clients: OrderedDict[tuple[bytes, str], Ocs] = OrderedDict()
        self._places: WeakValueDictionary[bytes, TokenPlaces] = WeakValueDictionary()

    def for_token(self, token: str, owner: str = "") -> Ocs:
        """The client that calls with `token` for the organisation `owner`. Owners of one token share its limit of calls, in turns."""
        key = sha256(token.encode("utf-8", "surrogatepass")).digest(), owner
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = self._new(token, *key)
        self._clients.move_to_end(key)
        if len(self._clients) > TOKENS_LIMIT:
            self._clients.popitem(last=False)
        return client

    @property
    def total_seconds(self) -> float:
        """Seconds that a call may take, the wait for a place included."""
        return self._settings.total_seconds

    @property
    def background_places(self) -> int:
        """How many calls with one token may be under way in the background at once."""
        return background_places(self._settings.concurrency)

    def _new(self, token: str, digest: bytes, owner: str) -> Ocs:
        places = self._places.get(digest)
        if places is None:
            places = self._places[digest] = self._places_of(token)
        link = OcsLink(
            self._outbound,
            self._settings,
            token,
            self._clock,
            places=places,
            owner=owner,
            system=self.system,
            long_answers=self._long_answers,
        )
        return Ocs(link)

    def _places_of(self, token: str) -> TokenPlaces:
        """The places of `token`: for every call, for issuing calls alone, for the background. Processes share each kind by its name."""
        count, name = self._settings.concurrency, None if self._lease is None else places_name(token)
        reserved = reserved_places(count)
        return TokenPlaces(
            Places(self._count(name, count - reserved)),
            self._clock,
            reserved=Places(self._count(name and f"{name}:issuing", reserved)) if reserved else None,
            background=Places(self._count(name and f"{name}:background", background_places(count))),
        )

    def _count(self, name: str | None, most: int) -> PlaceCount:
        return PlaceCount(most) if self._lease is None or name is None else self._lease.places(name, most)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._outbound.aclose()


def places_name(token: str) -> str:
    """The name of the places of `token` in the database. Choice: slow to compute, because a token may be short."""
    return "ocs:" + scrypt(token.encode("utf-8", "surrogatepass"), salt=b"places", n=1 << 11, r=8, p=1, dklen=16).hex()


def ocs_limits(settings: OcsSettings) -> OutboundLimits:
    """The limits that the outbound client of the pool is opened with.

    Connections are kept for less than the shortest idle time of common servers (5 s): a write on a connection that was just closed would
    leave its outcome unknown.
    """
    return OutboundLimits(connections=200, keepalive_seconds=4.0, total_seconds=settings.total_seconds)


RESERVED_SHARE = 4
"""One place of so many is for issuing calls only; of two or three places one, of one place none."""


def reserved_places(count: int) -> int:
    """How many of `count` places are for issuing calls only."""
    return 0 if count < 2 else max(1, count // RESERVED_SHARE)


def background_places(count: int) -> int:
    """How many of `count` places what is read in the background may have: half of them."""
    return max(1, count // 2)
