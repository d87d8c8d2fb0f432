"""How a month is called on what people read."""

NAMES = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")


def month_name(month: int) -> str:
    """YYYYMM in words, in English wherever the service runs."""
    return f"{NAMES[month % 100 - 1]} {month // 100}"
