"""Changing the key that seals what is stored: logins and waiting mails outlive it."""

import base64
from dataclasses import replace

from clients.mail.letter import Letter
from operations.letters import open_letter, queue_letter, seal_letter
from operations.people.signing_keys import signing_keys_at
from storage.engine.sql import Connection
from storage.mail import take_mails
from storage.rekey import SEALED_COLUMNS, count_of_key, count_older, outermost_key_ids, reseal
from storage.sealing import Keyring
from tests.identity.house import IdentityHouse
from tests.world import NOON


async def test_after_rekey_tokens_verify_secrets_open_and_mails_can_be_sent(house: IdentityHouse) -> None:
    deps, store = house.deps, house.world.store
    [old] = deps.keyring.key_ids
    program = await house.program(token_endpoint_auth_method="client_secret_post")
    code = (await house.consent(program["client_id"]))["code"]
    tokens = (await house.exchange(program["client_id"], code, client_secret=program["client_secret"])).json()
    letter = Letter(to="a@buyer.test", subject="Code", text="123456")
    mail = seal_letter(letter, ids=deps.ids, keyring=deps.keyring, expires_at=NOON + 600)

    def queue(connection: Connection) -> None:
        queue_letter(connection, mail, deps.clock)

    await store.write(queue)
    waiting = await house.request_token(program["client_id"])
    fresh = f"fresh:{base64.b64encode(bytes(range(32))).decode()}"
    both = Keyring(f"{fresh},{keyring_text(deps.keyring)}", deps.ids.bytes)
    assert await store.read(outermost_key_ids) == {old}
    done = [await reseal(store, both, column) for column in SEALED_COLUMNS]
    assert sum(each.resealed for each in done) == 3 and sum(each.unopened for each in done) == 0
    assert await store.read(count_of_key, key_id=old) == await store.read(count_older, key_id="fresh") == 0
    assert await store.read(outermost_key_ids) == {"fresh"}

    new = Keyring(fresh, deps.ids.bytes)
    [taken] = await store.write(take_mails, token="t", now=NOON, most=9)
    assert open_letter(taken.id, taken.sealed, new) == letter
    [key] = await signing_keys_at(replace(deps, keyring=new), NOON)
    assert key.private.startswith("fresh.")
    object.__setattr__(deps, "keyring", new)
    assert (await house.mcp(tokens["access_token"])).status_code == 200
    renewed = await house.refresh(program["client_id"], tokens["refresh_token"], client_secret=program["client_secret"])
    assert renewed.status_code == 200
    assert (await house.allow(waiting)).startswith("https://")  # sealed with its own token


def keyring_text(keyring: Keyring) -> str:
    return ",".join(f"{name}:{base64.b64encode(key).decode()}" for name, key in keyring._keys.items())
