"""`reseller login` and `logout`: the whole way from a sign-up to an eSIM on the command line, without anybody handing out a key."""

import asyncio
import json
import os
import socket
import stat
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from registry.clock import SystemClock
from tests.cli.follower import Follower, following
from tests.cli.reseller import printed, refused
from tests.harness.fork_server import reseller
from tests.harness.processes import Running, environment, running
from tests.harness.thread_servers import serving_in_thread
from tests.people import Person, code_in, console_of
from transports.cli.stored_logins import stored_token

ADA = "ada@fjord.example"
LOGIN = ("login", "--no-browser")


@pytest.fixture(scope="module")
def ada(place: Path, server: Running) -> Person:
    person = Person(server, console_of(place / "data"), ADA)
    person.sign_up("Fjord Mobile")
    return person


@pytest.fixture
def home(tmp_path: Path, server: Running) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "RESELLER_URL": server.base_url}


@pytest.fixture(scope="module")
def one(ada: Person, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A login for those who leave it as it is at the server."""
    home = {"XDG_CONFIG_HOME": str(tmp_path_factory.mktemp("one")), "RESELLER_URL": ada.server.base_url}
    log_in(ada, home)
    return logins(home)


@pytest.fixture
def logged_in(one: Path, home: dict[str, str]) -> dict[str, str]:
    logins(home).parent.mkdir(parents=True)
    logins(home).write_bytes(one.read_bytes())
    return home


def kept(home: dict[str, str]) -> dict[str, Any]:
    return json.loads(logins(home).read_text())


def logins(home: dict[str, str]) -> Path:
    return Path(home["XDG_CONFIG_HOME"]) / "reseller" / "logins.json"


def aged(home: dict[str, str], **changed: object) -> None:
    """The access token has run out, or what else is changed."""
    stored = kept(home)
    for login in stored.values():
        login.update({"expires_at": 0.0} | changed)
    logins(home).write_text(json.dumps(stored))


def address_of(login: Follower) -> str:
    login.told("Log in with your browser:")
    login.told("")
    address = login.told("/auth/authorize?")
    login.told("")
    return address


def log_in(person: Person, home: dict[str, str], *words: str, admin: bool = True) -> str:
    """The command, and the person who allows it in their browser: what it prints at its end."""
    with following(*LOGIN, *words, cwd=Path.cwd(), **home) as login:
        back = httpx.get(person.allow(address_of(login), admin=admin))
        assert (back.status_code, "Go back to the terminal" in back.text) == (200, True)
        code, printed = login.ended()
    assert code == 0, printed
    return "\n".join(printed)


@pytest.mark.long
def test_a_person_signs_up_logs_in_and_has_an_esim_without_being_given_a_key(place: Path, server: Running, home: dict[str, str]) -> None:
    eva = Person(server, console_of(place / "data"), "eva@fjord.example")
    before = eva.mailed()
    started = printed("call", "signup_start", "--email", eva.address, "--organization-name", "Eva Mobile", "--json", cwd=place, **home)
    token, code = json.loads(started)["client_token"], asyncio.run(code_in(eva.console, before))
    verified = json.loads(printed("call", "signup_verify", "--client-token", token, "--code", code, "--json", cwd=place, **home))
    assert log_in(eva, home) == f"logged in at {server.base_url} (read write admin)"
    step = ("--name", "Eva Mobile", "--country", "NO", "--operator-type", "mvno")
    saved = json.loads(printed("call", "onboarding_save_org", *step, cwd=place, **home))
    assert saved["organization"]["name"] == "Eva Mobile" and saved["current_step"] == "ocs"
    connected = json.loads(printed("call", "onboarding_start_managed_account", cwd=place, **home))
    assert connected["connection"]["mode"] == "managed"
    made = json.loads(printed("call", "create_api_key", "--name", "shop", cwd=place, **home))
    issue = ("call", "create_connectivity_intent", "--plan", "test_global_1gb", "--idempotency-key", "first")
    intent = json.loads(printed(*issue, cwd=place, **home))
    assert intent["status"] == "succeeded" and intent["esim"]["activation_code"].startswith("LPA:1$")
    assert json.loads(printed(*issue, "--key", made["secret"], cwd=place, **home)) == intent, "the key is the same organisation's"
    assert verified["organization_id"] and made["secret"].startswith("ak_")
    assert printed("logout", cwd=place, **home) == f"logged out at {server.base_url}\n"
    assert plans(server, made["secret"]) == 401, "a key that a login made ends with it"
    code, message = refused(*issue, cwd=place, **home)
    assert code == 1
    assert "No credential" in message and "`reseller login --url URL`" in message
    assert refused("logout", cwd=place, **home) == (1, f"--url: there is no login at {server.base_url}\n")


@pytest.mark.long
def test_what_the_person_did_not_tick_the_login_may_not_do(place: Path, ada: Person, home: dict[str, str]) -> None:
    assert log_in(ada, home, admin=False).endswith("(read write)")
    code, message = refused("call", "list_audit_log", cwd=place, **home)
    assert code == 1 and "[credential_restricted]" in message
    assert log_in(ada, home, "--scope", "read", admin=False).endswith("(read)")
    code, message = refused("call", "create_connectivity_intent", "--plan", "test_global_1gb", cwd=place, **home)
    assert code == 1 and "[credential_restricted]" in message


@pytest.mark.long
def test_a_login_is_readable_by_its_user_alone_and_replaces_one_before_whose_keys_go_on(
    place: Path, ada: Person, home: dict[str, str]
) -> None:
    folder = logins(home).parent
    folder.mkdir(parents=True, mode=0o755)
    log_in(ada, home)
    assert sorted(path.name for path in folder.iterdir()) == ["logins.json", "logins.lock"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, logins(home))] == [0o700, 0o600]
    made = json.loads(printed("call", "create_api_key", "--name", "shop", cwd=place, **home))
    [first] = kept(home).values()
    log_in(ada, home)
    [second] = kept(home).values()
    assert first["client_id"] != second["client_id"]
    assert [plans(ada.server, token) for token in (first["access_token"], second["access_token"], made["secret"])] == [200, 200, 200]
    printed("logout", cwd=place, **home)
    assert [plans(ada.server, token) for token in (first["access_token"], second["access_token"], made["secret"])] == [200, 401, 200]


def plans(server: Running, credential: str) -> int:
    return httpx.get(f"{server.base_url}/v1/connectivity/plans", headers={"Authorization": f"Bearer {credential}"}).status_code


@pytest.mark.long
def test_a_login_that_has_run_out_is_renewed_once_by_all_who_want_it_at_the_same_moment(
    place: Path, ada: Person, home: dict[str, str]
) -> None:
    log_in(ada, home)
    aged(home)
    [before] = kept(home).values()
    words = [reseller(), "call", "list_connectivity_plans"]
    pair = [subprocess.Popen(words, cwd=place, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    ended = [process.communicate(timeout=60) for process in pair]
    assert [process.returncode for process in pair] == [0, 0], ended
    [after] = kept(home).values()
    assert before["refresh_token"] != after["refresh_token"] and before["access_token"] != after["access_token"]
    aged(home)

    async def many() -> list[str | None]:
        return await asyncio.gather(*(stored_token(ada.server.base_url, SystemClock()) for _ in range(5)))

    with patch.dict(os.environ, environment(home)):
        assert len(set(asyncio.run(many()))) == 1
    [after] = kept(home).values()
    refresh = {"grant_type": "refresh_token", "refresh_token": after["refresh_token"], "client_id": after["client_id"]}
    assert httpx.post(after["token_endpoint"], data=refresh).status_code == 200, "nobody used it before"


@pytest.mark.long
def test_a_login_that_was_ended_at_the_server_is_refused_and_forgotten(place: Path, ada: Person, home: dict[str, str]) -> None:
    log_in(ada, home)
    [login] = kept(home).values()
    form = {"token": login["refresh_token"], "client_id": login["client_id"]}
    httpx.post(login["revocation_endpoint"], data=form).raise_for_status()
    code, message = refused("call", "list_connectivity_plans", cwd=place, **home)
    assert code == 1 and "[unauthorized]" in message and "`reseller login --url URL`" in message
    aged(home)
    code, message = refused("call", "list_connectivity_plans", cwd=place, **home)
    url = ada.server.base_url
    assert (code, message) == (1, f"the login at {url} has ended; log in again with `reseller login --url {url}`, or use --key\n")
    assert kept(home) == {}
    assert refused("logout", cwd=place, **home)[0] == 1


def test_a_login_is_of_one_server_no_other_gets_its_token_and_a_key_counts_instead(place: Path, logged_in: dict[str, str]) -> None:
    home = logged_in
    code, message = refused("call", "list_connectivity_plans", "--key", "ak_wrong", cwd=place, **home)
    assert code == 1 and "[unauthorized]" in message
    assert printed("call", "list_connectivity_plans", cwd=place, **home)
    seen: list[str | None] = []
    with listening(seen) as other:
        refused("call", "list_connectivity_plans", "--url", other, cwd=place, **home)
    assert seen == [None]


@pytest.mark.long
def test_no_answer_but_the_one_to_this_login_is_taken(ada: Person, home: dict[str, str]) -> None:
    with following(*LOGIN, cwd=Path.cwd(), **home) as login:
        address = address_of(login)
        back = parse_qs(urlsplit(address).query)["redirect_uri"][0]
        port = urlsplit(back).port
        with socket.create_connection(("127.0.0.1", port or 0)):  # as browsers do, who may want it later
            for foreign in ("?code=ac_stolen&state=wrong", "?code=ac_stolen", "?error=access_denied", ""):
                answer = httpx.get(back + foreign)
                assert (answer.status_code, "not the answer" in answer.text) == (400, True)
            assert httpx.get(f"http://127.0.0.1:{port}/favicon.ico").status_code == 404
            true = ada.allow(address)
            assert httpx.post(true).status_code == 404
            assert not logins(home).exists()
            httpx.get(true).raise_for_status()
            assert login.ended() == (0, [f"logged in at {ada.server.base_url} (read write admin)"])


@pytest.mark.long
def test_the_answer_of_another_issuer_is_not_believed(ada: Person, home: dict[str, str]) -> None:
    with following(*LOGIN, cwd=Path.cwd(), **home) as login:
        where = ada.allow(address_of(login)).replace("iss=", "iss=https%3A%2F%2Fevil.example&was=")
        httpx.get(where).raise_for_status()
        login.told("what came back is not of the server that was asked; nothing was kept")
        assert login.ended() == (1, [])
    assert not logins(home).exists()


@pytest.mark.long
def test_a_person_who_says_no_is_told_of_in_one_line(ada: Person, home: dict[str, str]) -> None:
    with following(*LOGIN, cwd=Path.cwd(), **home) as login:
        httpx.get(ada.deny(address_of(login))).raise_for_status()
        login.told("the login was refused: The person did not allow it")
        assert login.ended() == (1, [])
    assert not logins(home).exists()


@pytest.mark.long
def test_a_scope_that_there_is_not_is_refused_by_the_server(ada: Person, home: dict[str, str]) -> None:
    with following(*LOGIN, "--scope", "everything", cwd=Path.cwd(), **home) as login:
        httpx.get(address_of(login), follow_redirects=True).raise_for_status()
        login.told("the login was refused: scope: of read write admin, separated by single spaces")
        assert login.ended() == (1, [])


def test_ctrl_c_ends_the_waiting_at_once(home: dict[str, str], ada: Person) -> None:
    with following(*LOGIN, cwd=Path.cwd(), **home) as login:
        address_of(login)
        code, printed = login.interrupted()
    assert (code, printed) == (130, [])


@pytest.mark.long
def test_nobody_who_comes_ends_it_when_the_time_is_over(home: dict[str, str], ada: Person) -> None:
    code, message = refused(*LOGIN, "--wait", "1", cwd=Path.cwd(), **home)
    assert code == 1 and message.endswith("nobody logged in within 1 seconds\n")


def test_a_server_that_is_away_is_named(place: Path, logged_in: dict[str, str]) -> None:
    home = logged_in
    away = "http://127.0.0.1:1"
    assert refused(*LOGIN, "--url", away, cwd=place, **home) == (3, f"{away} does not answer (refused); is it running?\n")
    aged(home, token_endpoint=f"{away}/auth/token", revocation_endpoint=f"{away}/auth/revoke")
    assert refused("call", "list_connectivity_plans", cwd=place, **home) == (3, f"{away} does not answer (refused); is it running?\n")
    assert len(kept(home)) == 1, "what may go right the next time is kept"
    code, message = refused("logout", cwd=place, **home)
    assert (code, kept(home)) == (3, {})
    assert (
        message
        == f"forgotten here, but not ended there: {away} does not answer (refused); is it running? Your account page there ends it\n"
    )


@pytest.mark.parametrize(
    ("url", "code", "told"),
    [
        ("esim.example", 2, "--url: must be http(s)://host[:port][/path], for example https://esim.example\n"),
        ("{server}/v1", 1, "says nothing of a service; is {server}/v1 its address?\n"),
        ("{server}", 1, "--url: the service there goes by another address: --url {real}\n"),
    ],
)
def test_an_address_that_is_not_the_services_is_told_with_the_right_one(
    url: str, code: int, told: str, place: Path, server: Running, home: dict[str, str]
) -> None:
    names = {"server": server.base_url.replace("127.0.0.1", "localhost"), "real": server.base_url}
    done = refused(*LOGIN, "--url", url.format(**names), cwd=place, **home)
    assert (done[0], done[1].endswith(told.format(**names))) == (code, True), done


@pytest.mark.long
def test_at_an_identity_provider_that_takes_no_strange_programs_a_key_is_asked_for(tmp_path: Path) -> None:
    seen: list[str | None] = []
    with listening(seen) as provider:
        settings = {"SERVICE_AUTH_ISSUER": provider, "SERVICE_AUTH_JWKS_URL": f"{provider}/keys", "SERVICE_AUTH_AUDIENCE": "reseller"}
        with running(tmp_path / "data", settings) as server:
            code, message = refused(*LOGIN, "--url", server.base_url, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path))
    where = f"people sign in at {provider}, where this program cannot log in by itself"
    assert (code, message) == (1, f"--url: {where}; use an API key: --key or RESELLER_API_KEY\n")


@pytest.mark.parametrize("content", ["[]", "{", '{"http://a": {}}'])
def test_a_file_that_holds_something_else_is_named_and_left_alone(place: Path, content: str, home: dict[str, str]) -> None:
    logins(home).parent.mkdir(parents=True)
    logins(home).write_text(content)
    code, message = refused("call", "list_connectivity_plans", cwd=place, **home)
    assert code == 2
    assert message == f"{logins(home)}: holds no logins; remove it and log in again with `reseller login --url URL`\n"
    assert logins(home).read_text() == content


@pytest.mark.long
def test_a_place_where_nothing_can_be_kept_is_named(place: Path, home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    code, message = refused("logout", cwd=place, **home)
    assert code == 2 and message.startswith(f"{tmp_path}/config/reseller: logins cannot be kept there (")
    assert refused("call", "list_connectivity_plans", cwd=place, **home)[0] == 1, "and whoever has none is asked for a key"


@contextmanager
def listening(seen: list[str | None]) -> Generator[str]:
    """A server that knows nothing and notes what it is sent as a credential."""

    class Nothing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization"))
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Not in the output of the tests."""

    with serving_in_thread(HTTPServer(("127.0.0.1", 0), Nothing)) as server:
        yield f"http://127.0.0.1:{server.server_port}"
