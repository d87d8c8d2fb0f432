"""The mails about signing up and in. Nothing in them comes from whoever asked: anybody can have one sent to anybody."""

from clients.mail.letter import Letter
from registry.ports import Site

IGNORE = "If it was not you, ignore this mail: without the code nothing happens. Nobody of ours will ask you for it."


def sign_up_letter(address: str, code: str, minutes: int, site: Site) -> Letter:
    """The code of a sign-up."""
    return Letter(address, "Your code to sign up", with_code("is signing up", code, minutes, site))


def sign_in_letter(address: str, code: str, minutes: int, site: Site) -> Letter:
    """The code of a sign-in."""
    where = "It works only on the page, and in the browser, that asked for it; no one else has a use for it."
    return Letter(address, "Your code to sign in", with_code("is signing in", code, minutes, site, where))


def with_code(doing: str, code: str, minutes: int, site: Site, where: str = "") -> str:
    """Who asked, the code on a line of its own, how long it is good for, and where."""
    return (
        f"Somebody, probably you, {doing} at {site.base_url} with this e-mail address. The code is\n\n{code}\n\n"
        f"It is good for {minutes} minutes and works once. {where}".rstrip()
        + f"\n\n{IGNORE}\n"
    )


def no_account_letter(address: str, site: Site) -> Letter:
    """Somebody wanted to sign in whom we do not know: only who reads the mail is told so."""
    return Letter(
        address,
        "You have no account yet",
        f"Somebody, probably you, wanted to sign in at {site.base_url} with this e-mail address, and no account has it.\n\n"
        f"To make one, sign up:\n\n{site.base_url}/auth/sign-up\n\n"
        "Or sign in with the address that you signed up with. If it was not you, ignore this mail: nothing happens.\n",
    )
