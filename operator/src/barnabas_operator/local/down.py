"""`barnabas local down`: stop what runs, keep what was written."""

from __future__ import annotations

from collections.abc import Callable

from barnabas_operator.local import broker, pipelines
from barnabas_operator.local.state import StateDirectory

Say = Callable[[str], None]


def down(state: StateDirectory, *, say: Say, timeout_s: float, delete_data: bool = False) -> None:
    """Stop pipelines, then the broker, each by SIGTERM; raises LocalError if one does not stop.

    Nothing is killed and nothing is deleted unless `delete_data` asks for it.
    """
    with state.held():
        stopped = 0
        for name in state.pipelines():
            files = pipelines.PipelineFiles(state.pipeline(name))
            if pipelines.end(files, timeout_s=timeout_s):
                stopped += 1
                say(f"pipeline {name}: stopped")
        if broker.end(broker.BrokerFiles(state.broker), timeout_s=timeout_s):
            stopped += 1
            say("the broker is stopped")
        if not stopped:
            say("nothing was running")
        if delete_data:
            state.remove()
            say(f"{state.path} is deleted")
        else:
            say(f"the data stay in {state.path}")
