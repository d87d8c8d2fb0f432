"""What every page of a shop needs of the service, made once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from operations.deps import Deps
from registry.call import Call
from registry.pipeline import Pipeline
from transports.shop.order_cookies import OrderCookies
from transports.shop.shelf import Shelf

if TYPE_CHECKING:
    from transports.service import Service


@dataclass(frozen=True, slots=True)
class Counter:
    """The pipeline that pages call through, and how our addresses look."""

    pipeline: Pipeline[Deps]
    report: Callable[[Call, BaseException], None]
    shelf: Shelf
    origin: str
    root: str
    """What stands before /shop in our public address; mostly nothing."""
    order_cookies: OrderCookies

    @property
    def deps(self) -> Deps:
        """The outside world."""
        return self.pipeline.deps


def make_counter(service: "Service", report: Callable[[Call, BaseException], None]) -> Counter:
    """The counter of a service."""
    return counter_of(service.pipeline, report, service.site.base_url)


def counter_of(pipeline: Pipeline[Deps], report: Callable[[Call, BaseException], None], base_url: str) -> Counter:
    """The counter of a pipeline that is known at this address."""
    base = urlsplit(base_url)
    root = base.path.rstrip("/")
    cookies = OrderCookies(root=root, secure=base.scheme == "https")
    return Counter(pipeline, report, Shelf(pipeline.deps), f"{base.scheme}://{base.netloc}", root, cookies)
