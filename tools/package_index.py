"""Where packages come from on this machine: the settings of pip and uv, read without either.

uv does not read pip's configuration. A mirror or a certificate authority that an administrator
entered there must count for the first download all the same, and for uv afterwards.
"""

from __future__ import annotations

import base64
import configparser
import html.parser
import json
import os
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEFAULT_INDEX: Final = "https://pypi.org/simple"
TIMEOUT_S: Final = 60
# Of the project page; that of uv is half a megabyte.
PAGE_BYTES_MAX: Final = 64 << 20
FILE_BYTES_MAX: Final = 256 << 20
# PEP 691, and PEP 503 for indexes that are older.
ACCEPT: Final = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"

UV_INDEX: Final = ("UV_DEFAULT_INDEX", "UV_INDEX_URL")
UV_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS")


class UnavailableError(Exception):
    """A package index that does not answer, or does not have the file."""


@dataclass(frozen=True, slots=True)
class PackageIndex:
    """An index, and the bundle of certificate authorities that it is trusted by."""

    url: str = DEFAULT_INDEX
    certificates: Path | None = None

    def files(self, project: str) -> dict[str, str]:
        """The file names of a project with their addresses."""
        page = f"{self.url.rstrip('/')}/{project}/"
        body, kind, address = self._get(page, PAGE_BYTES_MAX, accept=ACCEPT)
        if "json" in kind:
            links = [each["url"] for each in json.loads(body)["files"]]
        else:
            links = list(_links(body.decode()))
        addresses = [urllib.parse.urljoin(address, link) for link in links]
        return {_file_name(each): each for each in addresses}

    def download(self, address: str) -> bytes:
        """The content of a file; the caller checks its digest."""
        return self._get(address, FILE_BYTES_MAX, accept="*/*")[0]

    def _get(self, address: str, limit: int, *, accept: str) -> tuple[bytes, str, str]:
        parts = urllib.parse.urlsplit(address)
        if parts.scheme not in ("http", "https"):
            raise UnavailableError(
                f"{_without_password(address)}: the index is not at an http address"
            )
        headers = {"Accept": accept, "User-Agent": "barnabas-bootstrap"}
        if parts.username is not None:
            name = urllib.parse.unquote(parts.username)
            password = urllib.parse.unquote(parts.password or "")
            token = base64.b64encode(f"{name}:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {token}"
        shown = _without_password(address)
        request = urllib.request.Request(shown, headers=headers)
        context = ssl.create_default_context(
            cafile=str(self.certificates) if self.certificates else None
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as response:
                body = response.read(limit + 1)
                kind = response.headers.get_content_type()
        except urllib.error.HTTPError as error:
            error.close()
            raise UnavailableError(f"{shown}: {error}") from None
        except (OSError, ValueError) as error:
            raise UnavailableError(f"{shown}: {error}") from None
        if len(body) > limit:
            raise UnavailableError(f"{shown}: longer than {limit} bytes")
        # Links are relative to the page; the credentials of the index go with those on its host.
        return body, kind, address


def configured(environment: Mapping[str, str] | None = None) -> PackageIndex:
    """The index that variables name, then pip's configuration; PyPI where neither does."""
    variables = os.environ if environment is None else environment
    settings = _pip_settings(variables)
    urls = [*(variables.get(name) for name in (*UV_INDEX, "PIP_INDEX_URL")), settings["index-url"]]
    bundles = [
        *(variables.get(name) for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")),
        settings["cert"],
    ]
    bundle = next(filter(None, bundles), None)
    return PackageIndex(
        next(filter(None, urls), DEFAULT_INDEX), Path(bundle) if bundle is not None else None
    )


def for_uv(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that make uv use the same index and trust the same authorities."""
    variables = os.environ if environment is None else environment
    index = configured(variables)
    added = {}
    if index.url != DEFAULT_INDEX and not any(map(variables.get, UV_INDEX)):
        added["UV_DEFAULT_INDEX"] = index.url
    if index.certificates is not None and not any(map(variables.get, UV_CERTIFICATES)):
        added["SSL_CERT_FILE"] = str(index.certificates)
    return added


def _pip_settings(variables: Mapping[str, str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {"index-url": None, "cert": None}
    for path in _pip_files(variables):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            sys.stderr.write(f"barnabas: {path} is not read: {error}\n")
            continue
        for section in ("global", "install"):
            for name in found:
                found[name] = parser.get(section, name, fallback=found[name])
    return found


def _pip_files(variables: Mapping[str, str]) -> Iterator[Path]:
    """Pip's configuration files, in the order in which later ones override."""
    named = variables.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    home = Path(variables.get("HOME") or "/")
    for directory in reversed(variables.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")):
        yield Path(directory, "pip", "pip.conf")
    yield Path("/etc/pip.conf")
    if named is None:
        yield home / ".pip" / "pip.conf"
        yield Path(variables.get("XDG_CONFIG_HOME") or home / ".config", "pip", "pip.conf")
    yield Path(sys.prefix, "pip.conf")
    if named is not None:
        yield Path(named)


class _Links(html.parser.HTMLParser):
    """The addresses that a page of the simple API links to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if (tag, name) == ("a", "href") and value]


def _links(page: str) -> list[str]:
    parser = _Links()
    parser.feed(page)
    return parser.found


def _file_name(address: str) -> str:
    return urllib.parse.unquote(urllib.parse.urlsplit(address).path.rpartition("/")[2])


def _without_password(address: str) -> str:
    parts = urllib.parse.urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
