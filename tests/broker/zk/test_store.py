"""The port to coordination data is what the embedded store offers."""

from pathlib import Path

from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.store import Check, CoordinationStore, Create


def test_the_embedded_store_stands_behind_the_port(tmp_path: Path) -> None:
    """What is written through the port is read through it."""
    store: CoordinationStore = EmbeddedStore.open(tmp_path, now_ms=1)
    committed = store.commit([Create("/a", b"x"), Check("/a", 0)], now_ms=1)
    assert (committed.paths, store.get("/a")[0], store.children("/")) == (("/a", "/a"), b"x", ["a"])
    assert store.exists("/b") is None
    store.close()
