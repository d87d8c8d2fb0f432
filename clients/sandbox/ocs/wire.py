"""What every answer of the wire shares: members that are null or empty are left out, money is a float, some answers are bare."""

from typing import Final, TypeAlias, final

from clients.sandbox.ocs.entities import MICRO

Members: TypeAlias = dict[str, object]


@final
class Nothing:
    """An answer of status only."""


@final
class Broken:
    """A payload whose JSON is cut off in the middle (quirk 16)."""

    def __init__(self, payload: object) -> None:
        self.payload = payload


NOTHING: Final = Nothing()


def lean(members: Members) -> Members:
    """Without what is null or an empty array or object; a false, a zero and an empty string stay."""
    return {name: value for name, value in members.items() if not (value is None or value == [] or value == {})}


def euro(micro: int) -> float:
    """Micro-euro as the wire's float."""
    return micro / MICRO


def euro_or_none(micro: int | None) -> float | None:
    """As `euro`; what has no price has none."""
    return None if micro is None else micro / MICRO


def comma_euro(micro: int) -> str:
    """A reseller's balance, as only that is written (quirk 6)."""
    cents = abs(micro) // 10_000
    return f"{'-' if micro < 0 else ''}{cents // 100},{cents % 100:02d}"
