"""One consumer per thread: each has its partitions, its order and its commits.

No more threads than partitions can work. A consumer belongs to its thread: nobody else calls it.
"""

import threading

from confluent_kafka import Consumer
from kitchen import BROKER, fill, new_topic, number_in

THREADS, PARTITIONS, RECORDS = 3, 6, 300
topic = new_topic(PARTITIONS)
everybody_has_some = threading.Barrier(THREADS + 1)
all_is_done = threading.Event()
lock = threading.Lock()
done: list[tuple[str, int | None, int]] = []


def work() -> None:
    """What each thread does, from the beginning of its consumer to its end."""
    consumer = Consumer(BROKER | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    while len(consumer.assignment()) != PARTITIONS // THREADS:
        consumer.poll(0.1)
    everybody_has_some.wait(90)
    while not all_is_done.is_set():
        message = consumer.poll(0.1)
        if message is None:
            continue
        with lock:
            entry = (threading.current_thread().name, message.partition(), number_in(message))
            done.append(entry)
            if len(done) == RECORDS:
                all_is_done.set()
    consumer.close()


threads = [threading.Thread(target=work, name=f"worker {n}") for n in range(THREADS)]
for thread in threads:
    thread.start()
everybody_has_some.wait(90)
fill(topic, RECORDS, PARTITIONS)
for thread in threads:
    thread.join()

print(f"every record once: {sorted(number for _, _, number in done) == list(range(RECORDS))}")
owners = {(partition, name) for name, partition, _ in done}
print(f"{len({name for name, _, _ in done})} threads, each partition in one: {len(owners) == 6}")
for partition in range(PARTITIONS):
    numbers = [number for _, where, number in done if where == partition]
    assert numbers == sorted(numbers), "the order within a partition"
