"""What keeps a browser from doing anything with a page but showing it (security.md 3.9)."""

import base64
import hashlib


def page_policy(style: str, *, images: bool = True, forms: str = "'none'") -> str:
    """The Content-Security-Policy of a page: its own style sheet, by its hash, pictures within it, and no script."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    pictures = "img-src data:; " if images else ""
    return f"default-src 'none'; style-src 'sha256-{digest}'; {pictures}base-uri 'none'; form-action {forms}; frame-ancestors 'none'"
