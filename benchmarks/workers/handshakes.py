"""Opens connections with TLS, some at a time, each up to its first answer or to its authentication.

Without a user a connection is made once the broker has answered ApiVersions, which takes the end of
its own side of the handshake; with one, once SCRAM-SHA-512 has accepted it. Keys are derived from
the password once: what that costs is the client's, and the same for every connection. No connection
resumes the TLS session of another.

Specification: bootstrap, trust (a PEM file), user, password, at_once, kept (whether connections
stay), connections, seconds.
"""

from __future__ import annotations

import hashlib
import hmac
import select
import socket
import ssl
import struct
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from functools import cache
from secrets import token_urlsafe
from typing import Final

from barnabas_kafka.protocol.codec import encode
from barnabas_kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas_kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas_kafka.protocol.registry import ApiKey
from benchmarks.workers import frames
from benchmarks.workers.protocol import Report, Spec, serve
from benchmarks.workers.raw import STALLED_AFTER, allow_many_files

MECHANISM: Final = "SCRAM-SHA-512"
HASH: Final = "sha512"
Conversation = Generator[bytes, bytes, None]
"""Yields requests, and is sent their answers."""


@cache
def _keys(password: str, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    salted = hashlib.pbkdf2_hmac(HASH, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", HASH)
    return client_key, hashlib.new(HASH, client_key).digest()


def final_token(password: str, first_bare: str, server_first: str) -> bytes:
    """The client's last token, to what the server answered to its first."""
    attributes = dict(part.split("=", 1) for part in server_first.split(","))
    salt, iterations = b64decode(attributes["s"]), int(attributes["i"])
    client_key, stored_key = _keys(password, salt, iterations)
    without_proof = f"c=biws,r={attributes['r']}"
    message = f"{first_bare},{server_first},{without_proof}".encode()
    signature = hmac.digest(stored_key, message, HASH)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return f"{without_proof},p={b64encode(proof).decode()}".encode()


def _authenticate(token: bytes) -> bytes:
    body = encode(SaslAuthenticateRequest(auth_bytes=token), 1)
    return frames.framed(ApiKey.SASL_AUTHENTICATE, 1, body)


def _token(answer: bytes) -> bytes:
    """What a SaslAuthenticate response of version 1 carries; raises RuntimeError on its error."""
    error, length = struct.unpack_from(">hh", answer, 4)
    if error:
        raise RuntimeError(f"authentication failed with error {error}: {answer[8:]!r}")
    (size,) = struct.unpack_from(">i", answer, 8 + max(length, 0))
    return answer[12 + max(length, 0) :][:size]


class Connection:
    """One connection: takes what the socket allows, until `made`."""

    def __init__(self, spec: Spec, context: ssl.SSLContext) -> None:
        host, _, port = spec["bootstrap"].rpartition(":")
        # The kernel connects at once: no more are under way than its queue for the listener takes.
        plain = socket.create_connection((host, int(port)), timeout=STALLED_AFTER)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setblocking(False)
        self._socket = context.wrap_socket(
            plain, server_hostname=host, do_handshake_on_connect=False
        )
        self._conversation = self._converse(spec["user"], spec["password"])
        self._received = bytearray()
        self._connected = False
        self.descriptor = self._socket.fileno()
        self.made = False

    def advance(self) -> int:
        """Go on as far as possible; returns what to wait for: select.EPOLLIN or EPOLLOUT."""
        try:
            if not self._connected:
                self._socket.do_handshake()
                self._connected = True
                self._socket.send(next(self._conversation))
            while not self.made:
                received = self._socket.recv(4096)
                if not received:
                    raise EOFError("the broker closed the connection")
                self._received += received
                self._answer()
        except ssl.SSLWantWriteError:
            return select.EPOLLOUT
        except ssl.SSLWantReadError:
            pass
        return select.EPOLLIN

    def close(self) -> None:
        """Leave as clients do that end: without waiting for the broker's farewell."""
        self._socket.close()

    def _answer(self) -> None:
        """Take up what is one whole response."""
        if len(self._received) < 4:
            return
        (size,) = struct.unpack_from(">i", self._received)
        if len(self._received) < 4 + size:
            return
        answer = bytes(self._received[4 : 4 + size])
        del self._received[: 4 + size]
        try:
            request = self._conversation.send(answer)
        except StopIteration:
            self.made = True
            return
        # A request is small beside an empty send buffer.
        self._socket.send(request)

    def _converse(self, user: str, password: str) -> Conversation:
        """Requests, each sent once the answer to the one before has come."""
        if not user:
            yield frames.api_versions_frame()
            return
        handshake = encode(SaslHandshakeRequest(mechanism=MECHANISM), 1)
        yield frames.framed(ApiKey.SASL_HANDSHAKE, 1, handshake)
        first_bare = f"n={user},r={token_urlsafe(18)}"
        server_first = _token((yield _authenticate(f"n,,{first_bare}".encode())))
        last = final_token(password, first_bare, server_first.decode())
        _token((yield _authenticate(last)))


def prepare(spec: Spec) -> Callable[[], Report]:
    """A context that trusts the broker's authority."""
    allow_many_files()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(spec["trust"])
    context.minimum_version = ssl.TLSVersion.TLSv1_3

    def work() -> Report:
        poller = select.epoll()
        under_way: dict[int, Connection] = {}
        kept: list[Connection] = []
        begin = now = time.perf_counter()
        end = begin + spec["seconds"]
        left, made = spec["connections"], 0
        while True:
            while left and now < end and len(under_way) < spec["at_once"]:
                connection = Connection(spec, context)
                under_way[connection.descriptor] = connection
                poller.register(connection.descriptor, select.EPOLLOUT)
                left -= 1
            if not under_way:
                break
            ready = poller.poll(STALLED_AFTER)
            if not ready:
                raise TimeoutError(f"no answer for {STALLED_AFTER:g} s")
            for descriptor, _ in ready:
                connection = under_way[descriptor]
                wanted = connection.advance()
                if not connection.made:
                    poller.modify(descriptor, wanted)
                    continue
                made += 1
                del under_way[descriptor]
                poller.unregister(descriptor)
                if spec["kept"]:
                    kept.append(connection)
                else:
                    connection.close()
            now = time.perf_counter()
        return {"connections": made, "seconds": now - begin}

    return work


if __name__ == "__main__":
    serve(prepare)
