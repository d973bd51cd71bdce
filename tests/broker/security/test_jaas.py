"""Login files in Java's format."""

import pytest

from barnabas_broker.security.jaas import JaasError, LoginModule, parse
from barnabas_broker.zk.credentials import Credentials, Login


def test_sections_modules_and_options() -> None:
    """Comments, either kind of quotes, escapes, blanks anywhere, several modules and sections."""
    text = """
    // who brokers are
    KafkaServer {
        first.Module REQUIRED a=1 "b"='two words';
        second.Module optional;
    };
    Client{/* towards
    ZooKeeper */ org.apache.zookeeper.server.auth.DigestLoginModule required
        username="kafka" password="a\\"b\\\\c//d;}";};
    """
    assert parse(text) == {
        "KafkaServer": (
            LoginModule("first.Module", "required", {"a": "1", "b": "two words"}),
            LoginModule("second.Module", "optional", {}),
        ),
        "Client": (
            LoginModule(
                "org.apache.zookeeper.server.auth.DigestLoginModule",
                "required",
                {"username": "kafka", "password": 'a"b\\c//d;}'},
            ),
        ),
    }
    assert parse("") == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Client { M required a=b; }", "; is missing at the end"),
        ("Client { M required\n a=b };", "line 2: the name of an option is missing before }"),
        ("Client { M required a; };", "line 1: = is missing"),
        ("Client { M needed; };", "line 1: the flag has to be one of required"),
        ("Client M", "line 1: { is missing"),
        ('Client { M required a="b; };', 'line 1: " is not expected'),
        ('Client { M required a="${b}"; };', "properties (${…}) are not replaced"),
        ("C { M required; };\nC { M required; };", "the section C is there twice"),
    ],
)
def test_invalid_jaas_files_are_refused(text: str, reason: str) -> None:
    """The line and what is missing; never a value, which may be a password."""
    with pytest.raises(JaasError) as caught:
        parse(text)
    assert reason in str(caught.value)


def test_passwords_are_not_shown() -> None:
    """Neither by a module nor by what contains it."""
    assert "secret" not in repr(parse("C { M required password=secret; };"))


def test_secrets_are_not_shown() -> None:
    """A login says who and from where; no form of it has the password."""
    login = Login(username="kafka", password="s3cret", source="Client in file")
    assert str(login) == "the user kafka (Client in file)"
    shown = repr(Credentials(login=login, digest="kafka:s3cret"))
    assert "kafka" in shown
    assert "s3cret" not in shown
