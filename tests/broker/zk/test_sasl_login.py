"""DIGEST-MD5 without a server; `test_against_apache` has one that speaks it, and one that not."""

import re
from hashlib import md5
from typing import Any

import pytest
from puresasl import SASLProtocolException
from puresasl.client import SASLClient

from barnabas_broker.zk.credentials import Login
from barnabas_broker.zk.sasl_login import sasl_options


@pytest.fixture
def client() -> Any:
    """As kazoo makes one, for a host."""
    return SASLClient(host="a", **(sasl_options(Login(username="kafka", password="p")) or {}))


def test_the_response_to_a_challenge(client: Any) -> None:
    """By RFC 2831, for ZooKeeper's own realm and the name that all its members share."""
    assert client.process() is None
    challenge = b'realm="zk-sasl-md5",nonce="n0",charset=utf-8,algorithm=md5-sess,qop="auth"'
    said = client.process(challenge).decode()
    reported = {
        name: value.strip('"') for name, value in re.findall(r'([a-z-]+)=("[^"]*"|\w+)', said)
    }
    assert (reported["username"], reported["realm"]) == ("kafka", "zk-sasl-md5")
    assert reported["digest-uri"] == "zookeeper/zk-sasl-md5"
    user = md5(b"kafka:zk-sasl-md5:p").digest()
    first = md5(user + f":n0:{reported['cnonce']}".encode()).hexdigest()
    second = md5(b"AUTHENTICATE:zookeeper/zk-sasl-md5").hexdigest()
    whole = f"{first}:n0:{reported['nc']}:{reported['cnonce']}:auth:{second}"
    assert reported["response"] == md5(whole.encode()).hexdigest()


@pytest.mark.parametrize("challenge", [None, b"", b"garbage"])
def test_a_server_that_does_not_speak_it(client: Any, challenge: bytes | None) -> None:
    """Ends with the error that kazoo takes for a refusal, instead of going round for ever."""
    client.process()
    with pytest.raises(SASLProtocolException):
        client.process(challenge)


def test_without_a_login_sasl_is_not_used() -> None:
    """Without a login kazoo does not speak SASL."""
    assert sasl_options(None) is None
