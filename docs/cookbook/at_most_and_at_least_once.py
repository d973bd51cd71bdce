"""At most once and at least once: what a crash costs is decided by when you commit.

Commit first, work later: what was committed but not yet worked on is lost.
Work first, commit later: what was worked on but not yet committed is worked on again.
"""

import os
import signal

from confluent_kafka import Consumer
from kitchen import BROKER, Tell, filled_topic, next_of, number_in, told_by


def work(tell: Tell, topic: str, group: str, commit_first: bool, crash_at: int | None) -> None:
    """Work on records one by one until the last; at one of them, die between the two steps."""
    settings = {
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        # Who comes back under the same name goes on at once, without a wait for the dead one.
        "group.instance.id": "worker",
    }
    consumer = Consumer(BROKER | settings)
    consumer.subscribe([topic])
    number = -1
    while number < 9:
        message = next_of(consumer)
        number = number_in(message)
        if commit_first:
            consumer.commit(message, asynchronous=False)
        else:
            tell(number)
        if number == crash_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if commit_first:
            tell(number)
        else:
            consumer.commit(message, asynchronous=False)
    consumer.close()


if __name__ == "__main__":
    topic = filled_topic(10)
    for name, commit_first in (("at most once", True), ("at least once", False)):
        group = f"{topic}-{commit_first}"
        before = told_by(work, topic, group, commit_first, 5)
        after = told_by(work, topic, group, commit_first, None)
        print(f"{name}: {before}, killed, then {after}")
