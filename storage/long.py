"""Functions that take long: SQLite runs them in a thread, in a transaction of their own, instead of on the event loop."""

from collections.abc import Callable
from typing import Concatenate, Generic, ParamSpec, TypeVar

from storage.connection import Connection

P = ParamSpec("P")
T = TypeVar("T")


class Long(Generic[P, T]):
    """A storage function that is marked so; it is called like any other."""

    def __init__(self, fn: Callable[Concatenate[Connection, P], T]) -> None:
        self._fn = fn

    def __call__(self, connection: Connection, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._fn(connection, *args, **kwargs)


def is_long(fn: object) -> bool:
    """Whether it is marked so."""
    return isinstance(fn, Long)


def as_long_as(write: object, fn: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate[Connection, P], T]:
    """A function that runs another one in its transaction takes as long as that one."""
    return Long(fn) if is_long(write) else fn
