"""Runs the operator: `python -m barnabas_operator`.

In the environment BARNABAS_BROKER_IMAGE, BARNABAS_ZOOKEEPER_IMAGE and BARNABAS_PIPELINE_IMAGE name
the images of the pods, WATCH_NAMESPACES the namespaces to watch (all if empty);
BARNABAS_RESYNC_SECONDS says how often to look without being asked, BARNABAS_HEALTH_PORT where
/healthz, /readyz and /metrics are served.
"""

from __future__ import annotations

import logging
import os
import sys

from barnabas_operator.handlers.operator import Environment, run


def main() -> int:
    """Run the operator; returns the exit status."""
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    # Every change of every watched object otherwise.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    # Signals are ours, not kopf's; it warns of that for every namespace.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
    try:
        environment = Environment.of(os.environ)
    except ValueError as error:
        logging.getLogger("barnabas_operator").error("%s", error)
        return 2
    run(environment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
