"""Kinds of use in words of ours."""

from typing import Literal

Kind = Literal["data", "calls_out", "calls_in", "sms_out", "sms_in", "other"]
KINDS: dict[int, Kind] = {33: "data", 1: "calls_out", 40: "calls_out", 15: "calls_in", 41: "calls_in", 21: "sms_out", 22: "sms_in"}
"""By usage type upstream; calls over IP are calls."""


def kind_of(usage_type: int) -> Kind:
    """The word for a usage type; `other` for one that nobody told us of."""
    return KINDS.get(usage_type, "other")
