"""The index of pip's and uv's settings is the one that is asked."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tools import package_index
from tools.package_index import PackageIndex

# Path → content type and body.
Pages = Mapping[str, tuple[str, bytes]]


@contextmanager
def served(pages: Pages) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """A server of pages: its address, and the paths and Authorization headers it has seen."""
    seen: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, self.headers.get("Authorization", "")))
            kind, body = pages.get(self.path, ("", b""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind or "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


JSON = "application/vnd.pypi.simple.v1+json"
AS_JSON = json.dumps({"files": [{"url": "../../files/uv-1-py3-none-any.whl#sha256=0"}]}).encode()
AS_HTML = b'<!doctype html><body><a href="../../files/uv-1-py3-none-any.whl#sha256=0">uv</a></body>'


@pytest.mark.parametrize(("kind", "body"), [(JSON, AS_JSON), ("text/html", AS_HTML)])
def test_files_of_a_project(kind: str, body: bytes) -> None:
    """Both forms of the simple API, with addresses relative to the page."""
    pages = {"/simple/uv/": (kind, body), "/files/uv-1-py3-none-any.whl": ("application/x", b"zip")}
    with served(pages) as (address, seen):
        index = PackageIndex(f"{address.replace('//', '//me:s%40cret@')}/simple/")
        (name, where), *others = index.files("uv").items()
        assert name == "uv-1-py3-none-any.whl"
        assert not others
        assert index.download(where) == b"zip"
    credentials = "Basic " + base64.b64encode(b"me:s@cret").decode()
    assert seen == [
        ("/simple/uv/", credentials),
        ("/files/uv-1-py3-none-any.whl", credentials),
    ]


def test_errors_name_the_address_without_its_password() -> None:
    """They are pasted into reports."""
    with served({}) as (address, _):
        index = PackageIndex(f"{address.replace('//', '//me:secret@')}/simple")
        with pytest.raises(package_index.UnavailableError, match=r"/simple/uv/: .*404") as raised:
            index.files("uv")
    assert "secret" not in str(raised.value)
    with pytest.raises(package_index.UnavailableError, match="not at an http address"):
        PackageIndex("file:///etc").files("passwd")


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Variables of a user whose pip has a mirror and a bundle."""
    folder = tmp_path / ".config" / "pip"
    folder.mkdir(parents=True)
    (folder / "pip.conf").write_text(
        "[global]\nindex-url = https://user.invalid/simple\ncert = /etc/user.pem\n"
    )
    return {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "none")}


def test_pips_configuration_counts(home: dict[str, str], tmp_path: Path) -> None:
    """Its files, then its variables, then uv's."""
    assert package_index.configured(home) == PackageIndex(
        "https://user.invalid/simple", Path("/etc/user.pem")
    )
    named = tmp_path / "named.conf"
    named.write_text("[install]\nindex-url = https://named.invalid/simple\n")
    by_file = home | {"PIP_CONFIG_FILE": str(named)}
    assert package_index.configured(by_file).url == "https://named.invalid/simple"
    by_variable = by_file | {"PIP_INDEX_URL": "https://variable.invalid/simple"}
    assert package_index.configured(by_variable).url == "https://variable.invalid/simple"
    by_uv = by_variable | {"UV_DEFAULT_INDEX": "https://uv.invalid/simple"}
    assert package_index.configured(by_uv).url == "https://uv.invalid/simple"


def test_without_configuration_it_is_pypi(tmp_path: Path) -> None:
    """As pip and uv have it; /dev/null turns pip's files off."""
    variables = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": "/dev/null"}
    assert package_index.configured(variables) == PackageIndex("https://pypi.org/simple")
    assert package_index.for_uv(variables) == {}


def test_uv_gets_what_pip_has(home: dict[str, str]) -> None:
    """Unless it was told something else."""
    assert package_index.for_uv(home) == {
        "UV_DEFAULT_INDEX": "https://user.invalid/simple",
        "SSL_CERT_FILE": "/etc/user.pem",
    }
    own = home | {"UV_INDEX_URL": "https://uv.invalid/simple", "SSL_CERT_DIR": "/etc/certificates"}
    assert package_index.for_uv(own) == {}


def test_a_configuration_that_cannot_be_read_is_named(
    home: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """pip would stop; the first installation can do without."""
    path = tmp_path / ".config" / "pip" / "pip.conf"
    path.write_text("index-url = https://user.invalid/simple\n")
    assert package_index.configured(home).url == "https://pypi.org/simple"
    assert str(path) in capsys.readouterr().err
