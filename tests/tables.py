"""Rows that have the same members, with the names of the members said once."""

from typing import Any


def tabled(value: Any) -> Any:
    """`value` with every list of two objects or more that have the same members as a table: the names, then the values of each row."""
    if isinstance(value, dict):
        return {name: tabled(each) for name, each in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) > 1 and all(isinstance(each, dict) and each.keys() == value[0].keys() for each in value):
        return {"columns": list(value[0]), "rows": [[tabled(each[name]) for name in value[0]] for each in value]}
    return [tabled(each) for each in value]
