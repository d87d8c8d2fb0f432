"""A store whose process dies at one of its commits: right before it, or right after."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from registry.errors import StoreUnavailable
from storage.engine.sql import Connection
from storage.engine.store import Store
from tests.wrapped_store import WrappedStore

P = ParamSpec("P")
T = TypeVar("T")


class Killed(BaseException):
    """The process is no more: nothing catches this."""


class Mortal(WrappedStore):
    """Dies at the commit `at`, counted from 0; `after`: that one is still written. Nothing is read or written afterwards."""

    def __init__(self, store: Store, at: int, after: bool) -> None:
        super().__init__(store)
        self.at, self.after, self.commits, self.dead = at, after, 0, False

    async def read(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self.dead:
            raise Killed
        return await self.store.read(fn, *args, **kwargs)

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self.dead:
            raise Killed
        fatal = self.commits == self.at
        self.commits += 1
        if fatal and not self.after:
            self.dead = True
            raise Killed
        result = await self.store.write(fn, *args, **kwargs)
        if fatal:
            self.dead = True
            raise Killed
        return result

    async def aclose(self) -> None:
        """The real one is somebody else's."""


class Forgetful(WrappedStore):
    """Does not take the commits with these numbers."""

    def __init__(self, store: Store, refused: set[int]) -> None:
        super().__init__(store)
        self.refused, self.commits = refused, 0

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        self.commits += 1
        if self.commits - 1 in self.refused:
            raise StoreUnavailable("the database is away")
        return await self.store.write(fn, *args, **kwargs)

    async def aclose(self) -> None:
        """The real one is somebody else's."""
