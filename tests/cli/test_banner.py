"""What `serve` prints for people."""

from dataclasses import replace
from pathlib import Path

import pytest

from registry.ports import Site
from tests.cli.reseller import printed, refused
from transports.cli.serve import StartBanner, new_key_command, opened_text, payments_text, sign_in_text
from transports.settings_files import load_settings

SITE = Site(
    base_url="http://127.0.0.1:8000",
    upgrade_url="",
    connect_url="",
    docs_url="http://127.0.0.1:8000/docs",
    mcp_url="http://127.0.0.1:8000/mcp",
    sign_in_url="http://127.0.0.1:8000/auth/sign-in",
)


TREE = StartBanner(SITE, "data/service.db", "demo", "org_1", None, 1, 19, "simulated", "reseller keys create NAME --data data")


def tree(api_key: str | None) -> str:
    return replace(TREE, api_key=api_key).as_tree()


def test_the_first_start_prints_its_key_and_a_call_with_it() -> None:
    text = tree("ak_first")
    assert "ak_first  (shown this once)" in text
    assert "-H 'Authorization: Bearer ak_first'" in text
    assert '"Authorization": "Bearer ak_first"' in text
    assert "Console   http://127.0.0.1:8000/console" in text


def test_a_demo_says_who_signs_in_and_where_the_code_is() -> None:
    told = sign_in_text(load_settings({}), True)
    assert told == "as admin@demo.invalid; the code comes in this terminal, as every mail does"
    assert f"Console   http://127.0.0.1:8000/console  (sign in {told})" in replace(TREE, sign_in_as=told).as_tree()
    mailed = load_settings({}, smtp_url="smtp://mail.example:25", mail_from="Esim <noreply@esim.example>")
    assert sign_in_text(mailed, True) == "as admin@demo.invalid; the code goes to that address by mail"
    assert sign_in_text(load_settings({}), False) == ""


def test_a_start_with_another_identity_provider_names_its_page_in_place_of_the_console() -> None:
    text = replace(TREE, site=replace(SITE, sign_in_url="https://login.example/")).as_tree()
    assert "Sign in   https://login.example/" in text
    assert "/console" not in text


def test_a_later_start_tells_how_to_get_a_key_and_prints_a_call_that_the_shell_fills_in() -> None:
    text = tree(None)
    assert "a new one: reseller keys create NAME --data data" in text
    assert '-H "Authorization: Bearer $RESELLER_API_KEY"' in text
    assert '"Authorization": "Bearer <API_KEY>"' in text


def test_a_start_without_demo_data_speaks_of_no_earlier_start() -> None:
    text = replace(TREE, organisation=None, mode="production").as_tree()
    assert "earlier start" not in text
    assert "none is made without demo data; for an organisation (`reseller org create`): reseller keys create NAME" in text


def test_it_says_which_payment_processor_it_is_and_how_to_take_another() -> None:
    settings = load_settings({})
    assert payments_text(settings).startswith("simulated in this process, no real money; a real one by SERVICE_PAYMENTS_KEY")
    started = replace(TREE, payments=payments_text(settings))
    assert "─ Payments  simulated in this process" in started.as_tree()
    for key, mode in (("sk_live_12345678", "real, live mode"), ("rk_test_12345678", "real, test mode")):
        assert payments_text(load_settings({}, payments_key=key, payments_webhook_secret="whsec_12345678")) == mode


def test_the_command_for_a_new_key_names_the_directory_of_a_sqlite_file_alone() -> None:
    assert new_key_command(load_settings({}, data="my data")).endswith("reseller keys create NAME --data 'my data'")
    on_postgresql = load_settings({}, data="data", database_url="postgresql://reseller@127.0.0.1/reseller")
    assert new_key_command(on_postgresql).endswith("reseller keys create NAME")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7"])
def test_a_demo_that_listens_to_other_machines_says_what_it_opens_and_to_whom(host: str) -> None:
    told = opened_text(host, True, SITE.base_url)
    assert told in replace(TREE, opened=told).as_tree()
    assert all(
        words in told for words in ("machine that reaches", "unencrypted", "the key above", "codes", "payment pages", "--host 127.0.0.1")
    )
    assert opened_text(host, False, SITE.base_url) == ""


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_a_demo_for_this_machine_alone_opens_nothing(host: str) -> None:
    assert opened_text(host, True, SITE.base_url) == "" and "Open " not in TREE.as_tree()


def test_the_configuration_follows_the_server_and_the_organisation_that_are_named(tmp_path: Path) -> None:
    cursor = printed("mcp", "config", "cursor", cwd=tmp_path, RESELLER_URL="http://127.0.0.1:9999")
    assert '"url": "http://127.0.0.1:9999/mcp"' in cursor
    assert '"url": "http://127.0.0.1:9999/mcp"' in printed("mcp", "config", "cursor", "--url", "http://127.0.0.1:9999/mcp", cwd=tmp_path)
    desktop = printed("mcp", "config", "claude-desktop", "--org", "org_1", cwd=tmp_path)
    assert '"--org",' in desktop and '"org_1"' in desktop


def test_a_secrets_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    code, message = refused("serve", "--port", "0", cwd=tmp_path, SERVICE_SECRETS_DIR="/nope")
    assert (code, message) == (2, "SERVICE_SECRETS_DIR: /nope cannot be read (No such file or directory)\n")


def test_an_address_of_another_machine_is_not_called_taken(tmp_path: Path) -> None:
    code, message = refused("serve", "--port", "0", "--host", "192.0.2.1", cwd=tmp_path)
    assert code == 2 and message.endswith("; choose another with --host and --port\n")
