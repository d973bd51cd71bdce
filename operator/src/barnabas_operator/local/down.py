"""`barnabas local down`: stop what runs, keep what was written."""

from __future__ import annotations

from collections.abc import Callable

from barnabas_operator.local import broker, coordination, pipelines, repair, zookeeper
from barnabas_operator.local.state import DamagedError, Record, StateDirectory

Say = Callable[[str], None]


def down(state: StateDirectory, *, say: Say, timeout_s: float, delete_data: bool = False) -> None:
    """Stop pipelines, brokers, then what they share; raises LocalError if one does not stop.

    Nothing is killed and nothing is deleted unless `delete_data` asks for it. A record that cannot
    be read is no hindrance.
    """
    with state.held():
        stopped = 0
        for name in state.pipelines():
            pipeline = pipelines.PipelineFiles(state.pipeline(name))
            if pipelines.end(pipeline, timeout_s=timeout_s):
                stopped += 1
                say(f"pipeline {name}: stopped")
        try:
            record = state.load() or Record(cluster="", file="")
        except DamagedError as error:
            say(str(error))
            record = repair.bare(state)
        for name, files in broker.files_of(record, state).items():
            if broker.end(files, name=name, timeout_s=timeout_s):
                stopped += 1
                say(f"{name} is stopped")
        for name, keeper in coordination.files_of(record, state).items():
            if zookeeper.end(keeper, name=name, timeout_s=timeout_s):
                stopped += 1
                say(f"{name} is stopped")
        if not stopped:
            say("nothing was running")
        if delete_data:
            state.remove()
            say(f"{state.path} is deleted")
        else:
            say(f"the data stay in {state.path}")
