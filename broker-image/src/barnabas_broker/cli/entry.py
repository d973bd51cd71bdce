"""Where the `barnabas` command begins: before anything is loaded that takes time."""

import signal
import sys

from barnabas_broker.server.process import stop_signals

BROKER_START = ["broker", "start"]
WAIT_FOR_RACK = ["broker", "wait-for-rack"]


def main() -> None:
    """Run the command; one that is to become a broker can be stopped from here on."""
    if sys.argv[1:3] == BROKER_START:
        stop_signals.end_at_once()
    elif sys.argv[1:3] == WAIT_FOR_RACK:
        from barnabas_broker.cli.pod import end_on_sigterm

        end_on_sigterm()
    # Ctrl-C while modules are loaded is no reason for a traceback.
    interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interrupts:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from barnabas_broker.cli.main import main as command

    if interrupts:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command(prog_name="barnabas")
