"""`reseller call` of every operation: its options become the very request that the example stands for, and what comes back is printed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, get_args
from urllib.parse import unquote

import orjson
import pytest

from operations.catalogue import CATALOGUE
from registry.binding import Binding
from registry.catalogue import AnyOperation
from registry.operation import Example, shown_field_name
from tests.cli.reseller import run_reseller
from tests.contract.stage import is_document
from tests.draw import drawn
from tests.harness.thread_servers import serving_in_thread
from transports.cli.call import TAKEN_OPTIONS, is_secret_field, option_flag

ALL = [pytest.param(o, id=o.id) for o in CATALOGUE.operations.values()]
KEY, TOKEN = "ak_of_the_command", "of-the-first-step"


@dataclass
class Asked:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Listener:
    """Somebody who takes any request and answers what was said beforehand."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list[Asked])
    answers: list[tuple[int, str, bytes]] = field(default_factory=list[tuple[int, str, bytes]])


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    heard = Listener()

    class Handler(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline()
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            given = {name.lower(): value for name, value in self.headers.items()}
            heard.asked.append(Asked(self.command, self.path, given, body))
            status, media_type, content = heard.answers.pop(0)
            self.send_response(status)
            self.send_header("content-type", media_type)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    with serving_in_thread(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        heard.url = f"http://127.0.0.1:{server.server_port}"
        yield heard


def options(operation: AnyOperation, example: Example) -> list[str]:
    """The fields as a person types them; a notification, which holds what no field names, as a whole."""
    found: list[str] = []
    if not set(example.input) <= {shown_field_name(name, info) for name, info in operation.params.model_fields.items()}:
        return ["--json-input", json.dumps(dict(example.input))]
    for name, value in example.input.items():
        word = option_flag(name, TAKEN_OPTIONS)
        if isinstance(value, bool):
            found.append(word if value else word.replace("--", "--no-", 1))
        else:
            found += [word, "-" if name in secrets_of(operation) else value if isinstance(value, str) else json.dumps(value)]
    return found


def secrets_of(operation: AnyOperation) -> set[str]:
    """The fields that are typed or piped, never written on the command line."""
    return {shown_field_name(name, info) for name, info in operation.params.model_fields.items() if is_secret_field(info)}


def answer_of(operation: AnyOperation, example: Example) -> tuple[str, bytes]:
    if not is_document(operation):
        return "application/json", orjson.dumps(example.answer)
    kind = get_args(operation.result)[0]
    return kind, b'event: done\ndata: {"text": "x"}\n\n' if kind == "text/event-stream" else b"a document"


def said(operation: AnyOperation, asked: Asked) -> Any:
    """The input that a request carries, read as the HTTP door reads it."""
    path, _, query = asked.target.partition("?")
    binding, values = Binding(operation), list[str]()
    for pattern, text in zip(operation.path.split("/"), path.split("/"), strict=True):
        before, opened, rest = pattern.partition("{")
        if opened:
            values.append(unquote(text.removeprefix(before).removesuffix(rest.partition("}")[2])))
    return json.loads(binding.gather(dict(zip(binding.path_names, values, strict=True)), query, asked.body) or b"{}")


@pytest.mark.parametrize("operation", drawn(ALL, __file__))
def test_a_command_asks_and_answers_as_the_example_says(operation: AnyOperation, listener: Listener, tmp_path: Path) -> None:
    once, example = operation.once, operation.examples[0]
    words = ["call", operation.id, "--url", listener.url, "--key", KEY, *options(operation, example)]
    kind, content = answer_of(operation, example)
    challenge = orjson.dumps({"message": "Sure?", "confirm_token": TOKEN, "expires_in_seconds": 120, "route": ""})
    listener.answers = [(202, "application/json", challenge)] * operation.confirm + [(operation.status, kind, content)]
    listener.asked.clear()
    typed = "".join(f"{example.input[name]}\n" for name in secrets_of(operation) & set(example.input))
    words += [*(["--idempotency-key", "k1"] if once else []), *(["--yes"] if operation.confirm else [])]
    done = run_reseller(*words, cwd=tmp_path, stdin=typed)
    assert done.returncode == 0, done.stderr
    for number, asked in enumerate(listener.asked):
        assert (asked.method, said(operation, asked)) == (operation.method, dict(example.input))
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert asked.headers.get(once.header.lower() if once else "idempotency-key") == ("k1" if once else None)
        assert asked.headers.get("x-confirm-token") == (TOKEN if number else None)
    assert len(listener.asked) == 1 + operation.confirm and listener.answers == []
    if kind == "application/json":
        assert json.loads(done.stdout) == example.answer
    else:
        assert done.stdout
