"""The draw as a plugin of pytest, which tests/conftest.py registers.

It is apart from tests/draw.py because the test command reads that file before pytest begins, and pytest imports its plugins itself.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pytest
from xdist.workermanage import WorkerController

from tests.draw import ONE_IN, TALLY, Draw, changed_files, number, relative, told, ways


@dataclass(frozen=True)
class LeftOut:
    """A long test that was not drawn, as the terminal counts it. Plugins look into what it counts as into reports: it has no slots."""

    nodeid: str


LEFT_OUT: list[LeftOut] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--draw", default="", metavar="KEY", help="try a share of the long tests, the cases and the operations, drawn by KEY")


def pytest_configure(config: pytest.Config) -> None:
    handed: dict[str, Any] | None = getattr(config, "workerinput", None)
    key: str = config.option.draw
    changed = changed_files() if key and handed is None else frozenset[str](handed["changed"] if handed else ())
    TALLY.draw = Draw(key, changed)


def pytest_configure_node(node: WorkerController) -> None:
    """Every worker is told what has changed: asked one by one they might disagree."""
    node.workerinput["changed"] = sorted(TALLY.draw.changed)


def pytest_report_header() -> str | None:
    key = TALLY.draw.key
    return f"drawn by {key}: one in {ONE_IN} of the long tests, of the cases of a rule and of the operations ({ways(key)})" if key else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that bears the mark is drawn by its own name; where its file or class does, by the name of that, with all others in it.

    Cases of a test with the mark `cases` are drawn by their own names, and one of them always is.
    """
    draw = TALLY.draw
    if not draw.key:
        return
    cases: defaultdict[str, list[str]] = defaultdict(list)
    for item in items:
        bearer = next((node for node, _ in item.iter_markers_with_node("long")), None)
        of_many = bearer is None and item.get_closest_marker("cases") is not None
        if bearer is not None or of_many:
            TALLY.long[item.nodeid] = relative(str(item.path)) in draw.changed or draw.takes((bearer or item).nodeid)
        if of_many:
            cases[item.nodeid.partition("[")[0]].append(item.nodeid)
    for names in cases.values():
        TALLY.long[min(names, key=lambda name: (not TALLY.long[name], number(draw.key, name)))] = True
    left_out = [item for item in items if not TALLY.long.get(item.nodeid, True)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if TALLY.long.get(item.nodeid, True)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells its controller what it counted, in which all workers agree."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["drawn"] = (TALLY.rows, TALLY.long)


def pytest_testnodedown(node: WorkerController) -> None:
    output: dict[str, Any] = getattr(node, "workeroutput", {})
    if "drawn" in output and not TALLY.long:
        TALLY.rows, TALLY.long = output["drawn"]
        LEFT_OUT.extend(LeftOut(name) for name, chosen in TALLY.long.items() if not chosen)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TALLY.draw.key:
        terminalreporter.stats.setdefault("deselected", []).extend(LEFT_OUT)
        terminalreporter.section("draw")
        terminalreporter.write_line(told(TALLY.draw.key, TALLY.counts()))
