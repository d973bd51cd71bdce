"""The broker as a black box, seen by real clients.

The whole folder runs against Barnabas, or against Apache Kafka itself as the oracle of the tests::

    BROKER_UNDER_TEST=apache .venv/bin/python -m pytest tests/clients

A test that fails on Apache is wrong, whatever Barnabas does. `conftest` starts one broker for the
whole session; a test that needs other settings or stops its broker starts one of its own.
"""

import time
from typing import Final

START_MS: Final = (int(time.time()) - 3600) * 1000
"""An hour ago: what records are stamped with. Much older ones would fall to retention."""
