"""The guide for agent builders: its Python is that of the example, which runs; its names are those of the service."""

import re
from dataclasses import fields

from operations.catalogue import CATALOGUE
from registry.catalogue import ToolSelection
from tests.docs.blocks import blocks
from tests.docs.reader import as_reader, done, other_blocks
from tests.harness.processes import ROOT, Running
from transports.cli.mcp import McpClient
from transports.mcp.prompts import PROMPT_TASKS
from transports.mcp.resources import INTENT_RESOURCE, OPERATION_RESOURCE, OPERATIONS_RESOURCE, PLANS_RESOURCE
from transports.mcp.settings import McpSettings

PAGE = "guide-agents.md"
TEXT = (ROOT / "docs" / PAGE).read_text()
KEY, PROGRAM = "reseller call create_api_key", "python examples/mcp_agent.py"


def test_the_python_of_the_page_is_that_of_the_program() -> None:
    program = (ROOT / "examples" / "mcp_agent.py").read_text()
    assert [block.text for block in blocks("python", document=PAGE) if block.text not in program] == []
    assert 'command("mcp_agent"' in (ROOT / "tests" / "examples" / "test_mcp_agent.py").read_text()


def test_the_key_of_the_page_is_made_and_restricted(server: Running) -> None:
    [block] = other_blocks(PAGE, PROGRAM)
    assert block.text.startswith(KEY)
    said = done(ROOT, block.text, **as_reader(server))
    assert '"read_only": true' in said and '"calls_per_day": 500' in said


def test_what_plain_mcp_leaves_out_is_in_the_toolsets_that_the_page_names() -> None:
    [names] = re.findall(r"`\?toolsets=([a-z]+,[a-z,]+)` shows", TEXT.replace("\n", " "))
    plain, whole = CATALOGUE.chosen(ToolSelection()), CATALOGUE.chosen(ToolSelection(tuple(names.split(","))))
    [sentence] = re.findall(r"It leaves out (.*?) and others", TEXT.replace("\n", " "))
    left_out = set(re.findall(r"`(\w+)`", sentence))
    assert len(left_out) == 3 and left_out <= whole - plain


def test_clients_prompts_resources_and_codes_are_those_of_the_service() -> None:
    resources = (str(OPERATIONS_RESOURCE.uri), OPERATION_RESOURCE.uri_template, PLANS_RESOURCE.uri, INTENT_RESOURCE.uri_template)
    assert [client for client in McpClient if client.value not in TEXT] == []
    named = (*PROMPT_TASKS, *resources, "confirm_declined", "confirm_token", "idempotency_key")
    assert [name for name in named if f"`{name}`" not in TEXT] == []
    codes = re.findall(r"`([A-Za-z_]+)`", "".join(re.findall(r"^\| (`[a-zA-Z_`, ]+`) \| [a-z]", TEXT, re.MULTILINE)))
    errors = "".join(path.read_text() for room in ("registry", "storage", "operations") for path in (ROOT / room).rglob("*.py"))
    assert len(codes) > 8
    assert [code for code in codes if f'"{code}"' not in errors and code not in CATALOGUE.names()] == []
    settings = {field.name: field.default for field in fields(McpSettings)}
    assert f"within {settings['state_seconds']} seconds" in " ".join(TEXT.split())
