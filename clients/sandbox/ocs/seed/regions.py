"""Groups of countries that zones, steering lists and travellers share."""


def countries(words: str) -> tuple[str, ...]:
    """Country codes with blanks between."""
    return tuple(words.split())


NORDICS = ("no", "se", "dk", "fi", "is")
BALTICS = ("ee", "lv", "lt")
DACH = ("de", "at", "ch")
BENELUX = ("be", "nl", "lu")
ALPS = ("ch", "at", "it", "fr", "de", "si")
IBERIA = ("es", "pt")
EUROPEAN_UNION = countries("se dk fi ie fr de nl be lu at it es pt gr pl cz sk hu ro bg hr si ee lv lt mt cy")
EUROPE = (*EUROPEAN_UNION, "no", "is", "gb", "ch", "rs", "tr")
NORTH_AMERICA = ("us", "ca", "mx")
AMERICAS = (*NORTH_AMERICA, "cr", "do", "br", "ar", "cl", "co", "pe")
ASIA_PACIFIC = countries("jp kr cn hk tw sg my th vn id ph in au nz")
MIDDLE_EAST_AND_AFRICA = countries("ae sa qa il jo eg ma tn za ke ng")
WORLD = (*EUROPE, *AMERICAS, *ASIA_PACIFIC, *MIDDLE_EAST_AND_AFRICA)
