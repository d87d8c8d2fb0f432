"""Who reads the mail of an address: a code is mailed there, and whoever asked for it sends it back with the token they were given."""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from operations.deps import Deps
from operations.services.hourly import spend_allowances
from operations.services.people.addresses import RULE, is_address, mailbox, normal
from operations.services.people.letters import Sealed, put_in_queue, seal_letter
from operations.services.people.mail_texts import no_account_letter, sign_in_letter
from operations.services.secret_token import digest_of, new_token
from registry.clock import Clock
from registry.errors import BadRequest
from registry.ids import Ids
from registry.throttle import network_of
from storage.calls.allowances import Allowance, allowance
from storage.connection import Connection
from storage.people.people import is_expected, keep_person
from storage.people.verifications import MOST_TRIES, Purpose, Verification, keep_verification, try_code, use_verification

CODE_SECONDS = 600
CODE_MINUTES = CODE_SECONDS // 60
DIGITS = 6
LETTERS = 8
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LOOK_ALIKES = str.maketrans("OIL", "011")
# Choice: more sign-ins than sign-ups, since people of one office sign in from one network every morning. What somebody asks for is counted
# for their own network and address together, so that nobody keeps the address's owner out from elsewhere. All strangers together may have
# so many mails sent to one mailbox; a browser that its owner has signed in with before is no stranger and has mails of its own.
SIGN_INS_PER_ADDRESS, SIGN_INS_PER_NETWORK, SIGN_INS_OF_STRANGERS, SIGN_INS_PER_BROWSER = 5, 30, 20, 5


SPELLED: Mapping[Purpose, str] = {"sign_up": "six digits", "sign_in": "eight letters and digits"}


class Mailed(NamedTuple):
    """A code, the token it goes with, and the row that knows digests of them."""

    token: str
    code: str
    verification: Verification


def new_code(ids: Ids, *, purpose: Purpose, address: str, details: str, now: float) -> Mailed:
    """A code to be mailed."""
    token = new_token(ids)
    code = drawn_code(ids.bytes(8), purpose)
    row = Verification(digest_of(token), purpose, address, code_digest(token, code), details, now + CODE_SECONDS)
    return Mailed(token, code, row)


def drawn_code(drawn: bytes, purpose: Purpose) -> str:
    """The code of eight random bytes: eight characters of five bits each to sign in, six digits to sign up."""
    if purpose == "sign_in":
        return "".join(CROCKFORD[byte & 31] for byte in drawn)
    return f"{int.from_bytes(drawn) % 10**DIGITS:0{DIGITS}}"


def code_digest(token: str, code: str) -> bytes:
    """What is kept of a code: all there are can be tried within a day, so it means nothing without the token, of which nothing is kept."""
    return hashlib.sha256(f"{token}|{code}".encode()).digest()


def wrong_code(purpose: Purpose = "sign_up") -> BadRequest:
    """One answer for a wrong code and for a token that is unknown, used, dead or too old: it tells nothing about tokens."""
    return BadRequest(
        "code: not the code that was mailed for this token, or it is not good any more",
        code="form_code_incorrect",
        param="code",
        hint=f"Check the {SPELLED[purpose]} and try again; "
        f"after {MOST_TRIES} tries or {CODE_MINUTES} minutes begin again to get another code",
    )


def plain_code(code: str, purpose: Purpose) -> str:
    """A code without the spaces and hyphens of whoever copied it, its letters in upper case and none like a digit. What cannot be a code
    is refused and spends no try."""
    plain = "".join(code.replace("-", " ").split())
    if purpose == "sign_in":
        plain = plain.upper().translate(LOOK_ALIKES)
        good = len(plain) == LETTERS and all(letter in CROCKFORD for letter in plain)
    else:
        good = len(plain) == DIGITS and plain.isascii() and plain.isdigit()
    if not good:
        raise wrong_code(purpose)
    return plain


def spelled_code(code: str) -> str:
    """The code of a sign-in as it is mailed: two halves are read more easily than eight characters."""
    return f"{code[: LETTERS // 2]}-{code[LETTERS // 2 :]}"


async def prove(deps: Deps, *, token: str, code: str, purpose: Purpose, now: float) -> bytes:
    """Spend a try, in a commit of its own; the digest of the token when it was the code. It is yet to be used up."""
    plain, digest = plain_code(code, purpose), digest_of(token)
    expected = code_digest(token, plain)
    if not await deps.store.write(try_code, digest=digest, purpose=purpose, code_digest=expected, now=now):
        raise wrong_code(purpose)
    return digest


async def begin_sign_in(deps: Deps, *, address: str, client: str, now: float, browser: str | None = None) -> str:
    """Mail a code; the token that goes with it, without which it is worth nothing. Somebody unknown gets a mail as well, which says so,
    and the same answer as fast. `browser`: the name of one that somebody has signed in with before who reads this mail. QuotaExceeded
    when too many were asked for."""
    if not is_address(address):
        raise BadRequest(f"email: {RULE}", param="email", hint="Check it for typing errors")
    address = normal(address)
    mailed = new_code(deps.ids, purpose="sign_in", address=address, details="{}", now=now)
    letters = (sign_in_letter(address, spelled_code(mailed.code), CODE_MINUTES, deps.site), no_account_letter(address, deps.site))
    sealed = [seal_letter(each, ids=deps.ids, keyring=deps.keyring, expires_at=now + CODE_SECONDS) for each in letters]
    await deps.store.write(
        mail_sign_in,
        wanted=allowances(address, network_of(client), browser),
        verification=mailed.verification,
        unknown=deps.ids.bytes(32),
        mails=(sealed[0], sealed[1]),
        clock=deps.clock,
        upgrade_url=deps.site.upgrade_url,
        now=now,
    )
    deps.post()
    return mailed.token


def allowances(address: str, network: str, browser: str | None) -> list[Allowance]:
    """What one sign-in is counted for: a browser that is known for the address by itself, where no stranger can use it up."""
    if browser is not None:
        return [allowance("sign_in_browser", f"{address}|{browser}", SIGN_INS_PER_BROWSER)]
    return [
        allowance("sign_in_address", f"{address}|{network}", SIGN_INS_PER_ADDRESS),
        allowance("sign_in_network", network, SIGN_INS_PER_NETWORK),
        allowance("sign_in_mailbox", mailbox(address), SIGN_INS_OF_STRANGERS),
    ]


def mail_sign_in(
    connection: Connection,
    *,
    wanted: list[Allowance],
    verification: Verification,
    unknown: bytes,
    mails: tuple[Sealed, Sealed],
    clock: Clock,
    upgrade_url: str,
    now: float,
) -> None:
    """The same statements for everybody; for somebody unknown the row waits for a code that there is not."""
    spend_allowances(connection, wanted=wanted, what="sign-ins", upgrade_url=upgrade_url, now=now)
    known = is_expected(connection, address=verification.address, now=now)
    keep_verification(connection, verification=verification if known else verification._replace(code_digest=unknown))
    put_in_queue(connection, mails[0] if known else mails[1], clock)


async def finish_sign_in(deps: Deps, *, token: str, code: str, now: float) -> str:
    """The person whose mail was read; who was invited and is new here becomes one."""
    digest = await prove(deps, token=token, code=code, purpose="sign_in", now=now)
    person = await deps.store.write(sign_in, digest=digest, id=deps.ids.new("usr_"), now=now)
    if person is None:
        raise wrong_code("sign_in")
    return person


def sign_in(connection: Connection, *, digest: bytes, id: str, now: float) -> str | None:
    """Use the code up; nothing when somebody else has just done so."""
    verified = use_verification(connection, digest=digest, purpose="sign_in", now=now)
    return None if verified is None else keep_person(connection, address=verified.address, id=id, now=now)
