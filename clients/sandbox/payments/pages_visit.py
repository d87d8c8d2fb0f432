"""One request to a page, while nobody else changes anything."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol, TypeAlias

from clients.sandbox.payments.pages_layout import Shown
from clients.sandbox.payments.state import State


class House(Protocol):
    """The processor, as its pages know it."""

    pages_url: str
    webhook_url: str

    def turn(self, *, writes: bool) -> AbstractAsyncContextManager[State]:
        """The state, for nobody else at the same time."""
        ...


class Visit(NamedTuple):
    """`name` is the last part of the address; `service_url` an address of the service's."""

    state: State
    name: str
    query: Mapping[str, str]
    form: Mapping[str, str]
    service_url: str

    @property
    def do(self) -> str:
        """The button that was pressed."""
        return self.form.get("do", "")


Act: TypeAlias = Callable[[Visit], Shown]
