"""What a broker's log begins with: which broker this is, and the settings it goes by."""

import logging

from barnabas_broker import __version__
from barnabas_broker.cluster.image import MetadataImage
from barnabas_kafka import compiled
from barnabas_kafka.settings.broker import BrokerSettings

log = logging.getLogger(__name__)


def announce(settings: BrokerSettings, image: MetadataImage, broker_id: int) -> None:
    """Say what this broker is and which settings it goes by."""
    log.info(
        "Barnabas %s, broker %d of cluster %s",
        __version__,
        broker_id,
        image.cluster_id,
    )
    if interpreted := compiled.interpreted():
        log.warning(
            "Running as pure Python, slower: %d of %d modules are not compiled;"
            " install a C compiler and Python's headers, and install Barnabas again",
            len(interpreted),
            len(compiled.MODULES),
        )
    for name, value in sorted(settings.changed.items()):
        log.info("setting %s = %s", name, value)
    for name, key in sorted(settings.without_effect.items()):
        log.warning("setting %s has no effect here: %s", name, key.note or "not acted on yet")
    for name, now in sorted(settings.renamed.items()):
        log.warning("Setting renamed: %s is %s now", name, now)
    for name, near in sorted(settings.unknown.items()):
        hint = f"; did you mean {near}?" if near else ""
        log.warning("setting %s is unknown and kept as given%s", name, hint)
