"""What an example says that cannot begin: a sentence, without a traceback and without the key."""

import socket

import pytest

from tests.examples.conftest import ended, program

NOBODY = "http://127.0.0.1:1"
KEY = "ak_of_nobody"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["money_month.py", "here"], "here is no address: "),
        (["fleet_report.py", NOBODY], f"No answer from {NOBODY}: "),
        (["fleet_report.py", "here"], "here is no address: "),
        (["fleet_month.py", NOBODY, NOBODY], f"No answer from {NOBODY}/"),
        (["fleet_month.py", "here"], "Give two addresses, "),
        (["shop_visit.py", f"{NOBODY}/shop/demo"], "No answer ("),
        (["shop_visit.py", "here"], "Give the shop's address, "),
        (["recompute_invoice.py", "nothing.csv", "nothing.json"], "nothing.json: No such file or directory"),
        (["webhook_receiver.py", "here"], "It cannot listen on port here ("),
    ],
    ids=lambda given: "-".join(given).split("://")[0] if isinstance(given, list) else "",
)
def test_an_address_or_a_file_that_is_none_ends_with_a_sentence(words: list[str], told: str) -> None:
    done = ended(*words, RESELLER_API_KEY=KEY, WEBHOOK_SECRETS="whsec_AAECAwQFBgcICQoLDA0ODw==")
    assert done.returncode != 0
    assert done.stderr.startswith(told) and done.stderr.count("\n") == 1
    assert KEY not in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["money_month", "fleet_report", "fleet_month", "mcp_agent", "mcp_client"])
def test_without_a_key_it_is_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RESELLER_API_KEY", raising=False)
    done = ended(f"{name}.py", NOBODY)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Set RESELLER_API_KEY to a key: `serve` prints one, `reseller keys create NAME` makes one.\n"


@pytest.mark.long
def test_an_import_that_fails_says_so_itself() -> None:
    done = program("money_month.py", NOBODY, RESELLER_API_KEY=KEY)
    assert done.returncode == 3
    assert f"--url: {NOBODY} does not answer (refused)" in done.stderr
    assert "Traceback" not in done.stderr and KEY not in done.stderr


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = ended("webhook_receiver.py", str(port), WEBHOOK_SECRETS="whsec_AAECAwQFBgcICQoLDA0ODw==")
    assert done.returncode == 1 and done.stderr.startswith(f"It cannot listen on port {port} (")
