"""Which methods of the wire the client calls, read from its sources: nobody keeps a list of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import clients.ocs
from clients.ocs.link import OcsSettings

SOURCES = Path(clients.ocs.__path__[0])


def methods_sent_by(*names: str) -> Iterator[str]:
    """The methods that the files of `clients/ocs` hand to functions of these names, as they call them."""
    for path in SOURCES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in names and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)


CLIENT_READS = frozenset(methods_sent_by("self._link.read", "self._link.stream"))
"""What changes nothing."""
CLIENT_WRITES = frozenset({*methods_sent_by("self._link.write", "self._modify"), OcsSettings("").zone_method})
"""What is never sent twice."""
