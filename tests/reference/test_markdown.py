"""The Markdown pages."""

from tests.openapi.lamps import LAMPS
from tests.openapi.written import COMMITTED_SITE
from transports.reference.files import markdown_reference


def section(id: str) -> str:
    page = markdown_reference(LAMPS, COMMITTED_SITE)["lamps.md"]
    start = page.index(f"\n## {id}\n")
    end = page.find("\n## ", start + 1)
    return page[start:end].strip()


def test_an_operation_is_told_whole() -> None:
    """How its parts look is in docs/reference, which is held to the catalogue."""
    told = section("create_lamp")
    assert "\nOrder a lamp.\n\nIt comes **unlit**. See <b>list_lamps</b>.\n" in told
    assert [line for line in told.splitlines() if line.startswith(("#", "The same", "Answer:"))] == [
        "## create_lamp",
        "### Input",
        "### It's a lamp",
        "The same over MCP:",
        "Answer:",
        "### Answer 201",
        "### Errors",
    ]
    assert [line.split(" |")[0] for line in told.splitlines() if line.startswith("| `")][:7] == [
        *("| `X-Idempotency-Key` (required)", "| `X-Approval-Reason`", "| `watts` (required)", "| `note`"),
        *("| `id`", "| `watts`", "| `colour`"),
    ]
    assert "| 409 | `colour_taken` | The colour is taken. |" in told


def test_a_query_stands_in_the_address_of_the_example() -> None:
    assert "curl 'http://127.0.0.1:8000/v1/lamps?colour=red&rooms=hall,attic' \\" in section("list_lamps")


def test_an_operation_without_an_example_is_shown_with_placeholders() -> None:
    assert "curl -X DELETE 'http://127.0.0.1:8000/v1/lamps/<id>' \\" in section("remove_lamp")


def test_what_is_no_tool_is_not_shown_as_one() -> None:
    assert "MCP" not in section("get_lamp_picture")
    assert "Image/svg+xml or image/png." in section("get_lamp_picture")


def test_an_answer_that_can_be_a_document_too_says_so() -> None:
    assert "- Answer: JSON, or `text/html` or `text/plain` where it is asked for." in section("get_lamp_card")


def test_who_may_call_is_said() -> None:
    assert "- Access: Admin: the tier enterprise and the role admin." in section("remove_lamp")
    assert "- Credential: The deployment's internal key." in section("blink_lamp")
    assert "- Credential: None: it is public." in section("about_lamps")


def test_a_bar_does_not_end_a_table_cell() -> None:
    assert "| List lamps \\| newest first. |" in markdown_reference(LAMPS, COMMITTED_SITE)["README.md"]
