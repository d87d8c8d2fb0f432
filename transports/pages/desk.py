"""What every page needs of the service, made once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from operations.deps import Deps
from registry.call import Call
from registry.pipeline import Pipeline
from storage.people.directory import StoreDirectory
from transports.pages.cookies import Cookies
from transports.pages.csrf import Seals

if TYPE_CHECKING:
    from transports.service import Service


@dataclass(frozen=True, slots=True)
class Desk:
    """The pipeline that pages call through, and how our addresses and cookies look."""

    pipeline: Pipeline[Deps]
    directory: StoreDirectory
    report: Callable[[Call, BaseException], None]
    seals: Seals
    cookies: Cookies
    origin: str
    root: str
    """What stands before /auth in our public address; mostly nothing."""
    mail_on_console: bool

    @property
    def deps(self) -> Deps:
        """The outside world."""
        return self.pipeline.deps


def make_desk(service: "Service", report: Callable[[Call, BaseException], None]) -> Desk:
    """The desk of a service."""
    base = urlsplit(service.site.base_url)
    return Desk(
        pipeline=service.pipeline,
        directory=service.directory,
        report=report,
        seals=Seals(service.keyring_text),
        cookies=Cookies(secure=base.scheme == "https"),
        origin=f"{base.scheme}://{base.netloc}",
        root=base.path.rstrip("/"),
        mail_on_console=not service.settings.smtp_url.get_secret_value(),
    )
