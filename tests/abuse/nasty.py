"""Values that break careless programs."""

from collections.abc import Iterator

TEXTS = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "\ud800",
    "\udfff\ud800",
    "\u202e",
    "\ufeff",
    "\u2028",
    "٣",
    "１２",
    "é" * 300,
    "a" * 300,
    "a" * 66_000,
    "%00",
    "%s{0}{}",
    "..",
    "/",
    "'; drop table intent;--",
    "\\",
    '"',
    "\r\nX: y",
    "NaN",
    "1e999",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "2026-W01-1T00:00:00Z",
    "2026-11-20T09:00:60Z",
    "https://[",
    "https://a:99999/",
    "https://xn--" + "9" * 60 + ".com/",
    "https://\u3002com/",
    "https://ⓐ.com/",
    "89" + "9" * 20,
    "٨٩" + "1" * 17,
    "cni_" + "z" * 26,
    "cnp_",
    "test_",
)
VALUES: tuple[object, ...] = (
    None,
    True,
    False,
    0,
    -0.0,
    -1,
    2**31,
    2**53 - 1,
    2**53,
    2**64,
    10**30,
    1e308,
    1e-320,
    0.5,
    5.0,
    [],
    {},
    [[]],
    [None],
    {"a": None},
    {"a": {"b": {}}},
    [1] * 300,
    {f"k{number}": "v" for number in range(60)},
    {"k": "v" * 501},
    {"[": "v"},
    {"\x01": "v"},
)


def instead(whole: dict[str, object], names: Iterator[str] | tuple[str, ...]) -> Iterator[dict[str, object]]:
    """The input with one member replaced by each value in turn, and with each text as a name of its own."""
    for name in names:
        for value in (*VALUES, *TEXTS):
            yield {**whole, name: value}
    for text in TEXTS:
        yield {**whole, text[:100]: 1}
