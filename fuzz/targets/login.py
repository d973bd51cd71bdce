"""What names and passwords arrive in: login modules (JAAS), and the tokens of PLAIN and of SCRAM.

Input: the text of a login file, and any token of an exchange.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Final

from barnabas_broker.security.jaas import JaasError, parse
from barnabas_broker.security.sasl import PlainServer, SaslError, SaslServer
from barnabas_broker.security.scram import (
    FIRST_TOKEN,
    ScramCredential,
    ScramMechanism,
    ScramServer,
)
from fuzz.oracle import promise

_PASSWORD: Final = "of-alice"
_SALTED: Final = hashlib.pbkdf2_hmac("sha256", _PASSWORD.encode(), b"salt", 4096)
_CLIENT_KEY: Final = hmac.digest(_SALTED, b"Client Key", "sha256")
_CREDENTIAL: Final = ScramCredential(
    salt=b"salt",
    stored_key=hashlib.sha256(_CLIENT_KEY).digest(),
    server_key=hmac.digest(_SALTED, b"Server Key", "sha256"),
    iterations=4096,
)
_PLAIN: Final = f"\0alice\0{_PASSWORD}".encode()


def check(data: bytes) -> None:
    """A text is read or refused with JaasError; nobody logs in without the password."""
    text = data.decode("latin-1")
    _sections(text)
    options = {"first": text, 'sec"ond\\': text[::-1]}
    written = " ".join(f"{json.dumps(name)}={_quoted(it)}" for name, it in options.items())
    if "${" not in text + text[::-1]:
        ((module,),) = parse(f"KafkaServer {{ a.B required {written}; }};").values()
        promise(module.options == options, "options are not read as they were written")
    plain = PlainServer({"alice": _PASSWORD})
    _evaluated(plain, data)
    passed = data.split(b"\0")[1:] == [b"alice", _PASSWORD.encode()]
    promise(plain.user is None or (plain.user == "alice" and passed), "PLAIN without the password")
    first = _scram()
    answer = _evaluated(first, data)
    promise(first.user is None, "SCRAM ends with its first token")
    promise(answer is None or FIRST_TOKEN.fullmatch(data) is not None, "a first token of any kind")
    second = _scram()
    second.evaluate(b"n,,n=alice,r=client")
    _evaluated(second, data)
    # Not its text: two bits of the last letter belong to no byte, and Java ignores them, too.
    sent = data.rpartition(b",p=")[2]
    promise(second.user is None or b64decode(sent) == _proof(), "SCRAM without the proof")


def _quoted(value: str) -> str:
    plain = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'.replace("\n", "\\n")


def _sections(text: str) -> None:
    try:
        sections = parse(text)
    except JaasError as error:
        promise("\n" not in str(error), "a complaint of several lines")
        return
    promise(all(each.flag for it in sections.values() for each in it), "a module without a flag")


def _scram() -> ScramServer:
    return ScramServer(
        ScramMechanism.SCRAM_SHA_256,
        lambda user: _CREDENTIAL if user == "alice" else None,
        nonce="server",
        decoy=lambda *_: (b"decoy", 4096),
    )


def _evaluated(server: SaslServer, token: bytes) -> bytes | None:
    try:
        return server.evaluate(token)
    except SaslError:
        return None


def _proof() -> bytes:
    first = b"n=alice,r=client"
    answer = b"r=clientserver,s=%b,i=4096" % b64encode(b"salt")
    message = b",".join((first, answer, b"c=biws,r=clientserver"))
    signature = hmac.digest(_CREDENTIAL.stored_key, message, "sha256")
    return bytes(a ^ b for a, b in zip(_CLIENT_KEY, signature, strict=True))


def seeds() -> Iterator[bytes]:
    """A login file, sound tokens of either mechanism, and ones that are almost so."""
    yield b'KafkaServer { a.B required user_alice="x\\"y" /* c */ n=1; // c\n c.D optional; };'
    yield _PLAIN
    yield b"bob" + _PLAIN
    yield b"n,a=alice,n=alice,r=client,tokenauth=true"
    yield b"n,,m=x,n=al=2Cice,r=client"
    yield b"c=biws,r=clientserver,p=" + b64encode(_proof())
    yield b"c=biws,r=client,p=" + b64encode(_proof())
