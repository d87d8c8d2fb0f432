"""One storage function on its way through a batch, and the caller who waits for it."""

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from registry.errors import StoreUnavailable
from storage.connection import Connection
from storage.outage import outage

T = TypeVar("T")


class Member(Protocol):
    """A job as a batch sees it: what it returns is between the job and its caller."""

    @property
    def long(self) -> bool:
        """Whether it is to run in the thread, in a batch of its own."""
        ...

    @property
    def abandoned(self) -> bool:
        """Whether the caller has gone."""
        ...

    def perform(self, connection: Connection) -> bool:
        """Run the function; whether its writes are to be kept."""
        ...

    def settle(self, failure: StoreUnavailable | None) -> None:
        """Answer the caller, once the batch is committed or lost."""
        ...


class Job(Generic[T]):
    """A function to run and the future of its caller."""

    __slots__ = ("_call", "_error", "_future", "_value", "long")

    def __init__(self, call: Callable[[Connection], T], future: asyncio.Future[T], *, long: bool = False) -> None:
        self.long = long
        self._call = call
        self._future = future
        self._error: Exception | None = None
        self._value: list[T] = []

    @property
    def abandoned(self) -> bool:
        return self._future.cancelled()

    def perform(self, connection: Connection) -> bool:
        try:
            self._value.append(self._call(connection))
        except Exception as error:  # whatever the function raises is its caller's, and only its caller's
            self._error = outage(error) or error
        return self._error is None

    def settle(self, failure: StoreUnavailable | None) -> None:
        if self._future.done():  # a cancelled caller
            return
        error = failure or self._error
        if isinstance(self._error, StoreUnavailable):  # the job that found the disk full knows the reason best
            error = self._error
        if error is None:
            self._future.set_result(self._value[0])
        else:
            self._future.set_exception(error)
