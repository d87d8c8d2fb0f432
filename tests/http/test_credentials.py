"""A credential that was sent where none is read: the refusal says what was seen, never its value, and what to send."""

from dataclasses import replace

import orjson
import pytest
from inline_snapshot import snapshot

from registry.authentication import expected_credential, key_advice
from registry.operation import Auth
from tests.http.asking import ask
from tests.world import SITE, World

NOTES = b"/v1/notes/x"
SECRET = b"ak_" + b"S3cr3t" * 7 + b"abcd"
WITHOUT_BEARER = "No credential: Authorization was sent without the word Bearer"
IN_ADDRESS = "No credential: a credential in the address is not read, since addresses are kept in logs"
NOTHING = "No credential: this operation needs one"


@pytest.mark.cases
@pytest.mark.parametrize(
    ("headers", "query", "error"),
    [
        ([], b"", NOTHING),
        ([(b"authorization", b"")], b"", NOTHING),
        ([(b"x-api-key", b"")], b"", NOTHING),
        ([], b"starting_after=token", NOTHING),
        ([], b"%ff=%ff&;=", NOTHING),
        ([(b"authorization", SECRET)], b"", WITHOUT_BEARER),
        ([(b"authorization", SECRET + b" x")], b"", WITHOUT_BEARER),
        ([(b"authorization", b"Bearer" + SECRET)], b"", WITHOUT_BEARER),
        (
            [(b"authorization", b"Basic " + SECRET)],
            b"",
            "No credential: Authorization was sent with the scheme Basic, and only Bearer is read",
        ),
        (
            [(b"authorization", b"S3cr3t " + SECRET)],
            b"",
            "No credential: Authorization was sent with another scheme, and only Bearer is read",
        ),
        ([(b"x-api-key", SECRET)], b"", "No credential: the header X-API-Key is not read"),
        ([], b"api_key=" + SECRET, IN_ADDRESS),
        ([], b"token=" + SECRET, IN_ADDRESS),
        ([], b"limit=1&Access_Token=" + SECRET, IN_ADDRESS),
    ],
)
async def test_what_was_sent_in_place_of_a_bearer_credential_is_named_and_not_repeated(
    world: World, headers: list[tuple[bytes, bytes]], query: bytes, error: str
) -> None:
    answer = await ask(world.door, "GET", NOTES + b"?" + query, headers)
    body = orjson.loads(answer.body)
    assert (answer.status, body["code"], body["error"]) == (401, "unauthorized", error)
    assert answer.headers["www-authenticate"] == 'Bearer realm="connectivity"'
    assert b"S3cr3t" not in answer.body and "S3cr3t" not in str(world.lines)


async def test_who_has_no_good_key_is_told_where_one_is_made(world: World) -> None:
    hints = []
    for headers in ([], [(b"authorization", b"Bearer ak_" + b"0" * 46)]):
        hints.append(orjson.loads((await ask(world.door, "GET", NOTES, headers)).body)["hint"])
    assert hints == snapshot(
        [
            "Send Authorization: Bearer <API key or session token>; https://reseller.test/auth/sign-up makes an account, "
            "https://reseller.test/auth/api-keys a key",
            "Make one at https://reseller.test/auth/api-keys. Whoever runs the service makes one with `reseller keys create`; "
            "with another good key, POST /v1/api-keys does",
        ]
    )


def test_where_people_sign_in_elsewhere_none_of_our_pages_is_named() -> None:
    elsewhere = replace(SITE, sign_in_url="https://id.test/in")
    assert [expected_credential(Auth.BEARER, elsewhere), expected_credential(Auth.SESSION, elsewhere), key_advice(elsewhere)] == snapshot(
        [
            "Send Authorization: Bearer <API key or session token>",
            "Sign in at https://id.test/in and send the session token as Authorization: Bearer <token>",
            "Whoever runs the service makes one with `reseller keys create`; with another good key, POST /v1/api-keys does",
        ]
    )
