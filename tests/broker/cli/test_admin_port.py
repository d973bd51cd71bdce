"""What brokers answer on their admin ports, and what is made of other answers."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from barnabas_broker.cli.admin_port import (
    AdminPortClient,
    admin_client,
    admin_url,
    has_caught_up,
    may_restart,
    risks,
)
from barnabas_broker.cli.errors import CommandError, InputError
from tests.waiting import ANSWER, seconds

ASKING = AdminPortClient(seconds(ANSWER))


@contextmanager
def answering(status: int, body: object) -> Iterator[str]:
    """An HTTP server that has one answer for everything."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            """Tests say nothing."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("listener", "host", "url"),
    [
        ("0.0.0.0:9404", "broker-1", "http://broker-1:9404"),
        ("[::]:9404", "fe80::1", "http://[fe80::1]:9404"),
        (":9404", "broker-1", "http://broker-1:9404"),
        ("10.0.0.1:9404", "broker-1", "http://10.0.0.1:9404"),
        ("127.0.0.1:0", "broker-1", None),
        ("", "broker-1", None),
    ],
)
def test_admin_url_of_a_listener(listener: str, host: str, url: str | None) -> None:
    """All addresses are reached where clients are; a port that the system chose is unknown."""
    assert admin_url(listener, host) == url
    secured = url and url.replace("http:", "https:")
    assert admin_url(listener, host, tls=True) == secured


def test_which_token_is_shown(tmp_path: Path) -> None:
    """The first of the file, and it is not in what is printed of the client."""
    file = tmp_path / "token"
    file.write_text("first-token-of-all\nsecond-token-of-all\n")
    client = admin_client(1, {}, file)
    assert client.token == "first-token-of-all"
    assert "token-of-all" not in repr(client)
    file.write_text("\n")
    with pytest.raises(InputError, match="there is no token in it"):
        admin_client(1, {}, file)
    with pytest.raises(InputError, match="No such file"):
        admin_client(1, {"ssl.ca.location": str(tmp_path / "absent.pem")}, None)


def test_a_port_that_wants_a_token() -> None:
    """The message says which option gives one."""
    with answering(401, b"") as url:
        with pytest.raises(CommandError, match="give --admin-token-file"):
            may_restart(url, ASKING)
        with pytest.raises(CommandError, match="the token is refused"):
            may_restart(url, AdminPortClient(seconds(ANSWER), "wrong"))


def test_yes_and_no_with_reasons() -> None:
    """503 is a no, with as much to say as a yes."""
    with answering(200, {"inSync": True, "percent": 100.0}) as url:
        assert has_caught_up(url, ASKING).yes
    one = {"topic": "t", "partition": 3, "reason": "1 needed"}
    no = {"mayRestart": False, "atRisk": {"count": 5, "partitions": [one]}, "unavoidable": None}
    with answering(503, no) as url:
        verdict = may_restart(url, ASKING)
    assert not verdict.yes
    assert risks(verdict, "atRisk") == ["t-3: 1 needed", "and 4 more"]
    assert risks(verdict, "unavoidable") == []


@pytest.mark.parametrize(
    ("status", "body", "reported"),
    [
        (404, {}, "answers 404"),
        (200, b"hello", "is not the admin port"),
        (200, {"mayRestart": "yes"}, "is not the admin port"),
        (200, [], "is not the admin port"),
    ],
)
def test_a_foreign_http_server_is_a_failure(status: int, body: object, reported: str) -> None:
    """A port of another program permits no restart."""
    with answering(status, body) as url, pytest.raises(CommandError, match=reported):
        may_restart(url, ASKING)


def test_an_unreachable_admin_port_is_a_failure() -> None:
    """Nothing listens on port 1."""
    with pytest.raises(CommandError, match=r"no answer from http://127.0.0.1:1/restart"):
        may_restart("http://127.0.0.1:1", ASKING)
