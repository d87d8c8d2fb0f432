"""Amounts as people read them."""

# ISO 4217: what has no hundredth, and what has thousandths.
WHOLE = frozenset(["BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF"])
THOUSANDTHS = frozenset(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"])


def money(amount: int, currency: str) -> str:
    """Minor units with their point."""
    code = currency.upper()
    places = 0 if code in WHOLE else 3 if code in THOUSANDTHS else 2
    whole, rest = divmod(abs(amount), 10**places)
    return f"{'-' if amount < 0 else ''}{whole:,}{f'.{rest:0{places}}' if places else ''} {code}"
