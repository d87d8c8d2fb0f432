"""A store around another one: what a test's store does not change is the real one's."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from storage.engine.database_signals import DatabaseSignals, PoolLoad
from storage.engine.sql import Connection
from storage.engine.store import Store

P = ParamSpec("P")
T = TypeVar("T")


class WrappedStore:
    """Does what the store in it does; `aclose` closes that one, too."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @property
    def dialect_name(self) -> str:
        return self.store.dialect_name

    @property
    def signals(self) -> DatabaseSignals:
        return self.store.signals

    @property
    def pool_load(self) -> PoolLoad:
        return self.store.pool_load

    @property
    def snapshot(self) -> int | None:
        return self.store.snapshot

    async def read(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.store.read(fn, *args, **kwargs)

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.store.write(fn, *args, **kwargs)

    async def aclose(self) -> None:
        await self.store.aclose()
