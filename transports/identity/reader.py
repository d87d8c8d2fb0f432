"""Whether an answer is for somebody before a browser or for a program."""

from transports.http.asgi import Headers


def reads_pages(headers: Headers) -> bool:
    """Browsers ask for HTML by its name when somebody goes to an address or sends a form; programs do not."""
    return any(b"text/html" in value.lower() for name, value in headers if name == b"accept")
