"""The commands of the page on approvals."""

import json
import re
from pathlib import Path

import pytest

from operations.changes.approvals import RECENT_SIGN_IN_SECONDS
from operations.changes.requests.approval_requests import APPROVAL_MAILS_PER_HOUR
from registry.approvals import REASON_LENGTH
from storage.approvals import APPROVALS_KEPT_SECONDS, OPEN_APPROVALS_LIMIT
from tests.docs.reader import as_reader, done, find
from tests.harness.processes import ROOT, Running

DOCUMENT = "approvals.md"


@pytest.mark.long
def test_a_key_that_asks_is_made_and_what_it_asks_for_is_listed(place: Path, server: Running) -> None:
    done(place, find("reseller call create_api_key", DOCUMENT), **as_reader(server))
    said = json.loads(done(place, find('AGENT="', DOCUMENT), **as_reader(server)))
    [waiting] = said["data"]
    assert (waiting["state"], waiting["operation"]) == ("waiting", "create_connectivity_webhook_endpoint")
    assert waiting["asked_by"]["name"] == "support agent"


def test_the_numbers_of_the_page_are_those_of_the_service() -> None:
    text = (ROOT / "docs" / DOCUMENT).read_text()
    assert f"at most {REASON_LENGTH} characters" in text and f"At most {OPEN_APPROVALS_LIMIT} calls" in text
    assert f"the last {RECENT_SIGN_IN_SECONDS // 60} minutes" in text and f"({APPROVAL_MAILS_PER_HOUR} an hour at most)" in text
    assert re.search(rf"for {APPROVALS_KEPT_SECONDS // 86_400} days", text)
