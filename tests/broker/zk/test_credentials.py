"""What is told of credentials, and what is not."""

from barnabas_broker.zk.credentials import Credentials, Login


def test_secrets_are_not_shown() -> None:
    """A login says who and from where; no form of it has the password."""
    login = Login(username="kafka", password="s3cret", source="Client in file")
    assert str(login) == "the user kafka (Client in file)"
    shown = repr(Credentials(login=login, digest="kafka:s3cret"))
    assert "kafka" in shown
    assert "s3cret" not in shown
