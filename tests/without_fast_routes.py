"""A plugin of pytest: the broker under test serves all requests by their handlers."""

import os

# Before any test file is imported: `tests.clients.brokers` reads it then.
os.environ["BROKER_UNDER_TEST"] = "barnabas-handlers"
