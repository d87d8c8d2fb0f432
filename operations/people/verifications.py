"""Codes that are mailed to prove who reads the mail of an address: whoever asked for one sends it back with the token they were given."""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from clients.mail.letter import Letter
from operations.deps import Deps
from operations.letters import queue_letter, seal_letter
from operations.secret_tokens import new_secret_token, secret_digest
from operations.vocabulary import EMAIL_RULE, is_email, mailbox_of, normal_email
from registry.errors import BadRequest
from registry.ids import Ids
from registry.rate_limits import address_network
from storage.allowances import Allowance, allowance_for, spend_allowances
from storage.engine.sql import Connection
from storage.people import ensure_person, is_expected
from storage.verifications import (
    MOST_CODE_TRIES,
    Verification,
    VerificationPurpose,
    insert_verification,
    try_verification_code,
    use_verification,
)

MAILED_CODE_SECONDS = 600
MAILED_CODE_MINUTES = MAILED_CODE_SECONDS // 60
_SIGN_UP_DIGITS = 6
_SIGN_IN_LETTERS = 8
_CROCKFORD_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LOOK_ALIKES = str.maketrans("OIL", "011")
# Choice: more sign-ins than sign-ups, since people of one office sign in from one network every morning. What somebody asks for is counted
# for their own network and address together, so that nobody keeps the address's owner out from elsewhere. All strangers together may have
# so many mails sent to one mailbox; a browser that its owner has signed in with before is no stranger and has mails of its own.
SIGN_INS_PER_ADDRESS, SIGN_INS_PER_NETWORK, SIGN_INS_OF_STRANGERS, SIGN_INS_PER_BROWSER = 5, 30, 20, 5
CODE_DESCRIPTIONS: Mapping[VerificationPurpose, str] = {"sign_up": "six digits", "sign_in": "eight letters and digits"}


class MailedCode(NamedTuple):
    """A code, the token it goes with, and the row that knows digests of them."""

    token: str
    code: str
    verification: Verification


def new_mailed_code(ids: Ids, *, purpose: VerificationPurpose, address: str, details: str, now: float) -> MailedCode:
    """A code to mail to `address`, good for ten minutes from `now`, in Unix seconds; `details` is stored until it comes back."""
    token = new_secret_token(ids)
    code = _code_of_bytes(ids.bytes(8), purpose)
    row = Verification(secret_digest(token), purpose, address, _mailed_code_digest(token, code), details, now + MAILED_CODE_SECONDS)
    return MailedCode(token, code, row)


def _code_of_bytes(drawn: bytes, purpose: VerificationPurpose) -> str:
    """The code of eight random bytes: eight characters of five bits each to sign in, six digits to sign up."""
    if purpose == "sign_in":
        return "".join(_CROCKFORD_ALPHABET[byte & 31] for byte in drawn)
    return f"{int.from_bytes(drawn) % 10**_SIGN_UP_DIGITS:0{_SIGN_UP_DIGITS}}"


def _mailed_code_digest(token: str, code: str) -> bytes:
    """The digest that is stored of `code`. It depends on `token`, of which nothing is stored: codes alone could all be tried in a day."""
    return hashlib.sha256(f"{token}|{code}".encode()).digest()


def wrong_mailed_code(purpose: VerificationPurpose = "sign_up") -> BadRequest:
    """One answer for a wrong code and for a token that is unknown, used, dead or too old: it tells nothing about tokens."""
    return BadRequest(
        "code: not the code that was mailed for this token, or it is not good any more",
        code="form_code_incorrect",
        param="code",
        hint=f"Check the {CODE_DESCRIPTIONS[purpose]} and try again; "
        f"after {MOST_CODE_TRIES} tries or {MAILED_CODE_MINUTES} minutes begin again to get another code",
    )


def _normal_mailed_code(code: str, purpose: VerificationPurpose) -> str:
    """A code without the spaces and hyphens of whoever copied it, its letters in upper case and none like a digit. What cannot be a code
    is refused and spends no try."""
    plain = "".join(code.replace("-", " ").split())
    if purpose == "sign_in":
        plain = plain.upper().translate(_LOOK_ALIKES)
        good = len(plain) == _SIGN_IN_LETTERS and all(letter in _CROCKFORD_ALPHABET for letter in plain)
    else:
        good = len(plain) == _SIGN_UP_DIGITS and plain.isascii() and plain.isdigit()
    if not good:
        raise wrong_mailed_code(purpose)
    return plain


async def prove_mailed_code(deps: Deps, *, token: str, code: str, purpose: VerificationPurpose, now: float) -> bytes:
    """Spends a try, in a commit of its own; the digest of `token`, still to be used up. Raises BadRequest for a wrong `code`."""
    plain, digest = _normal_mailed_code(code, purpose), secret_digest(token)
    expected = _mailed_code_digest(token, plain)
    if not await deps.store.write(try_verification_code, digest=digest, purpose=purpose, code_digest=expected, now=now):
        raise wrong_mailed_code(purpose)
    return digest


async def begin_sign_in(deps: Deps, *, address: str, client: str, now: float, browser: str | None = None) -> str:
    """Mail a code; the token that goes with it, without which it is worth nothing. Somebody unknown gets a mail as well, which says so,
    and the same answer as fast. `browser`: the name of one that somebody has signed in with before who reads this mail. QuotaExceeded
    when too many were asked for."""
    if not is_email(address):
        raise BadRequest(f"email: {EMAIL_RULE}", param="email", hint="Check it for typing errors")
    address = normal_email(address)
    mailed = new_mailed_code(deps.ids, purpose="sign_in", address=address, details="{}", now=now)
    # Two halves are read more easily than eight characters.
    halves = f"{mailed.code[: _SIGN_IN_LETTERS // 2]}-{mailed.code[_SIGN_IN_LETTERS // 2 :]}"
    letters = (sign_in_letter(address, halves, deps.site.base_url), no_account_letter(address, deps.site.base_url))
    sealed = [seal_letter(each, ids=deps.ids, keyring=deps.keyring, expires_at=now + MAILED_CODE_SECONDS) for each in letters]
    wanted, unknown = _sign_in_allowances(address, address_network(client), browser), deps.ids.bytes(32)

    def queue_mail(connection: Connection) -> None:
        """Runs the same statements for everybody: where nobody has the address, the row holds a digest that no code has."""
        spend_allowances(connection, wanted=wanted, what="sign-ins", upgrade_url=deps.site.upgrade_url, now=now)
        known, row = is_expected(connection, address=address, now=now), mailed.verification
        insert_verification(connection, verification=row if known else row._replace(code_digest=unknown))
        queue_letter(connection, sealed[0] if known else sealed[1], deps.clock)

    await deps.store.write(queue_mail)
    deps.post()
    return mailed.token


def _sign_in_allowances(address: str, network: str, browser: str | None) -> list[Allowance]:
    """What one sign-in is counted for: a browser that is known for the address by itself, where no stranger can use it up."""
    if browser is not None:
        return [allowance_for("sign_in_browser", f"{address}|{browser}", SIGN_INS_PER_BROWSER)]
    return [
        allowance_for("sign_in_address", f"{address}|{network}", SIGN_INS_PER_ADDRESS),
        allowance_for("sign_in_network", network, SIGN_INS_PER_NETWORK),
        allowance_for("sign_in_mailbox", mailbox_of(address), SIGN_INS_OF_STRANGERS),
    ]


async def finish_sign_in(deps: Deps, *, token: str, code: str, now: float) -> str:
    """The id of the person whose mailed `code` came back; one who was invited and is new becomes one. Raises BadRequest."""
    digest = await prove_mailed_code(deps, token=token, code=code, purpose="sign_in", now=now)
    person = await deps.store.write(_use_sign_in_code, digest=digest, id=deps.ids.new("usr_"), now=now)
    if person is None:
        raise wrong_mailed_code("sign_in")
    return person


def _use_sign_in_code(connection: Connection, *, digest: bytes, id: str, now: float) -> str | None:
    verified = use_verification(connection, digest=digest, purpose="sign_in", now=now)
    return None if verified is None else ensure_person(connection, address=verified.address, id=id, now=now)


# Nothing in the mails comes from whoever asked: anybody can have one sent to anybody.
_IGNORE_CODE_MAIL = "If it was not you, ignore this mail: without the code nothing happens. Nobody of ours will ask you for it."


def sign_up_letter(address: str, code: str, base_url: str) -> Letter:
    """The mail with the `code` of a sign-up at the service's `base_url`."""
    return Letter(address, "Your code to sign up", _code_mail_text("is signing up", code, base_url))


def sign_in_letter(address: str, code: str, base_url: str) -> Letter:
    where = "It works only on the page, and in the browser, that asked for it; no one else has a use for it."
    return Letter(address, "Your code to sign in", _code_mail_text("is signing in", code, base_url, where))


def _code_mail_text(doing: str, code: str, base_url: str, where: str = "") -> str:
    return (
        f"Somebody, probably you, {doing} at {base_url} with this e-mail address. The code is\n\n{code}\n\n"
        f"It is good for {MAILED_CODE_MINUTES} minutes and works once. {where}".rstrip()
        + f"\n\n{_IGNORE_CODE_MAIL}\n"
    )


def no_account_letter(address: str, base_url: str) -> Letter:
    """Somebody wanted to sign in whom we do not know: only who reads the mail is told so."""
    return Letter(
        address,
        "You have no account yet",
        f"Somebody, probably you, wanted to sign in at {base_url} with this e-mail address, and no account has it.\n\n"
        f"To make one, sign up:\n\n{base_url}/auth/sign-up\n\n"
        "Or sign in with the address that you signed up with. If it was not you, ignore this mail: nothing happens.\n",
    )
