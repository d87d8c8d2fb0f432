"""Something that is made once and copied for every test: what in it can never change is the same in all copies."""

import io
import pickle
from dataclasses import fields, is_dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Writer(pickle.Pickler):
    """Leaves tuples of values out, and writes a record as its values alone: their names would take most of the time of reading it."""

    def __init__(self, file: io.BytesIO, shared: list[object]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._shared, self._places = shared, dict[int, int]()

    def persistent_id(self, obj: Any) -> int | None:
        if not isinstance(obj, tuple) or not obj or not is_value(obj):
            return None
        if id(obj) not in self._places:
            self._places[id(obj)] = len(self._shared)
            self._shared.append(obj)  # and so its id stays its own
        return self._places[id(obj)]

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) or not is_dataclass(obj) or not all(field.init for field in fields(obj)):
            return NotImplemented
        return type(obj), tuple([getattr(obj, field.name) for field in fields(obj)])


def is_value(obj: object) -> bool:
    """Whether nothing in it can be changed: lists and mutable records have no hash."""
    try:
        hash(obj)
    except TypeError:
        return False
    return True


class Original(Generic[T]):
    """What copies are made of."""

    def __init__(self, made: T) -> None:
        self._shared = list[object]()
        file = io.BytesIO()
        Writer(file, self._shared).dump(made)
        self._written = file.getvalue()
        members = {"persistent_load": self._shared.__getitem__}  # of the class: Python 3.13 takes it from no instance
        self._reader: type[pickle.Unpickler] = type("Reader", (pickle.Unpickler,), members)

    def copy(self) -> T:
        return self._reader(io.BytesIO(self._written)).load()
