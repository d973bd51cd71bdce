"""The process that ends a dead broker's ZooKeeper session, so that others lead at once.

A broker that dies by itself leaves a session that ZooKeeper believes in until
`zookeeper.session.timeout.ms` have passed; until then its partitions have no leader. This program
waits. The broker sends it id and password of each session it has; when the broker's process has
ended, however it did, it connects as that session and closes it. It never acts before: a session
of a process that may still write is only ever ended by ZooKeeper itself.

It is run by path in an interpreter of its own (`-I -S`), knows nothing but a few modules of the
standard library, and waits in some megabytes of memory. It runs (`supervision` decides)

* as the parent of the broker, where the broker would be process 1 of a container, with which the
  kernel ends all others. It hands on signals, reaps what is left to process 1, and exits as the
  broker did. That the broker has ended it knows from `waitpid`.
* else as a child of the broker, which keeps its pid. That the broker has ended it knows from the
  end of the connection between them: the kernel closes a process's descriptors when its last
  thread can run no more, and no other process has this one.

Arguments: descriptor of the connection, pid of the broker if it is a child, `text` or `json`. Each
line that arrives replaces the one before: `id password timeout_ms host:port,...`, the id and the
password in hexadecimal, or `-` when there is no session to end any more.

A broker whose connection is TLS first hands on a descriptor, of memory with what is needed for TLS
(`zk.credentials.TlsMaterial`): the supervisor never shows a session's password in plain text then.

Of ZooKeeper's protocol it speaks two requests, ConnectRequest and closeSession (`zookeeper.jute`,
`ZooDefs.OpCode` of Apache ZooKeeper).
"""

import os
import select
import signal
import socket
import struct
import sys
import time

GIVE_UP_S = 5.0
"""How long to try. A container is started again only when its process 1 has ended, and an ensemble
that is away for longer than this lets no other broker lead either."""

ATTEMPT_S = 1.0
"""How long one member of the ensemble may take to answer."""

PAUSE_S = 0.1
"""Between two rounds over all members."""

FORWARDED = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
)  # fmt: skip

NONE = "-"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Wrap = Callable[[socket.socket, str], socket.socket]

_CLOSE_SESSION = struct.pack("!iii", 8, 1, -11)
_FRAME_BYTES_MAX = 1024
_LINE_BYTES_MAX = 1 << 16


class Received:
    """What the broker said, of which the last whole line counts."""

    def __init__(self) -> None:
        self._unfinished = b""
        self.last = NONE
        self.tls: int | None = None
        """Descriptor of what TLS is to be spoken with; None for a connection in plain text."""

    def receive(self, link: socket.socket) -> bool:
        """What has arrived, and descriptors with it; False at the end. Raises OSError."""
        data, descriptors, _, _ = socket.recv_fds(link, 4096, 1)
        for each in descriptors:
            if self.tls is not None:
                os.close(self.tls)
            self.tls = each
        self.take(data)
        return bool(data)

    def take(self, data: bytes) -> None:
        """Bytes that have arrived."""
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        if lines:
            self.last = lines[-1].decode()
        self._unfinished = self._unfinished[-_LINE_BYTES_MAX:]


def main(descriptor: int, child: int, shape: str) -> int:
    """Wait for the broker's end, close its session, and return what to exit with."""
    received = Received()
    link = socket.socket(fileno=descriptor)
    status = _as_parent(link, child, received) if child else _as_child(link, received)
    if received.last == NONE:
        return status
    # In a thread: to look up a name may take longer than there is time, and nothing ends it.
    from threading import Thread

    results: list[str] = []
    thread = Thread(target=lambda: results.append(_ended(received)), daemon=True)
    thread.start()
    thread.join(GIVE_UP_S)
    result = results[0] if results else "ZooKeeper did not answer in time"
    if result:
        _say(f"the broker ended without closing its session with ZooKeeper: {result}", shape)
    return status


def _as_child(link: socket.socket, received: Received) -> int:
    """Wait for the end of a broker that is not our child; returns 0."""
    # Keys on a terminal and service managers signal all processes; ours ends with the broker.
    for number in FORWARDED:
        signal.signal(number, signal.SIG_IGN)
    while received.receive(link):
        pass
    return 0


def _as_parent(link: socket.socket, child: int, received: Received) -> int:
    """Hand on signals until the broker has ended; returns what to exit with."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    numbers = (*FORWARDED, signal.SIGCHLD)
    for number in numbers:
        signal.signal(number, lambda *_: None)  # The number is in the pipe.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    waiting = select.poll()
    waiting.register(woken, select.POLLIN)
    waiting.register(link, select.POLLIN)
    code = _reap(child)  # It may have ended before anything could be noticed.
    while code is None:
        for descriptor, _ in waiting.poll():
            if descriptor != woken:
                _receive(link, received, waiting)
                continue
            for arrived in os.read(woken, 4096):
                if arrived != signal.SIGCHLD:
                    os.kill(child, arrived)
            code = _reap(child)
    link.setblocking(False)
    try:
        while received.receive(link):
            pass
    except BlockingIOError:  # A process that it started has the other end, too.
        pass
    return code


def _receive(link: socket.socket, received: Received, waiting: "select.poll") -> None:
    if not received.receive(link):  # It has ended, or is about to: `waitpid` says when.
        waiting.unregister(link)


def _reap(child: int) -> int | None:
    """Bury every process that has ended; what to exit with when the broker is among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            ended = os.waitstatus_to_exitcode(status)
            code = ended if ended >= 0 else 128 - ended


def _ended(received: Received) -> str:
    try:
        return end_session(received.last, None if received.tls is None else _secured(received.tls))
    except (OSError, ValueError) as error:
        return f"its TLS cannot be set up: {error}"


def _secured(descriptor: int) -> "Wrap":
    """What makes a connection a TLS one, from what the broker has handed on."""
    import json
    import ssl  # Late: it takes more memory than all the rest, and most never need it.

    with open(descriptor, "rb") as file:
        file.seek(0)
        document = json.load(file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = document["check_hostname"]
    context.minimum_version = ssl.TLSVersion(document["minimum"])
    context.maximum_version = ssl.TLSVersion(document["maximum"])
    if document["ciphers"]:
        context.set_ciphers(document["ciphers"])
    if document["trust"]:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata=document["trust"])
    else:
        context.load_default_certs()
    if document["identity"]:
        memory = os.memfd_create("identity", os.MFD_CLOEXEC)
        os.write(memory, document["identity"].encode("latin-1"))
        context.load_cert_chain(f"/proc/self/fd/{memory}", password=document["password"] or "")
        os.close(memory)
    return lambda plain, host: context.wrap_socket(plain, server_hostname=host)


def end_session(line: str, secured: "Wrap | None" = None) -> str:
    """Close the session that a line names; returns a word on it, empty if it had ended before.

    Tries all members in turn, for `GIVE_UP_S` or as long as the session lasts.
    """
    name, password, timeout_ms, hosts = line.split(" ")
    request = struct.pack("!iqiQ", 0, 0, int(timeout_ms), int(name, 16))
    request += _buffer(bytes.fromhex(password)) + b"\0"
    reason = ""
    give_up_at = time.monotonic() + min(GIVE_UP_S, int(timeout_ms) / 1000)
    while time.monotonic() < give_up_at:
        for address in hosts.split(","):
            host, _, port = address.rpartition(":")
            try:
                closed = _end_at((host.strip("[]"), int(port)), _buffer(request), secured)
            except OSError as error:
                reason = f" ({error})" if secured else ""
                continue
            return f"0x{name} is closed now" if closed else ""
        time.sleep(PAUSE_S)
    return f"0x{name} cannot be closed, for no ZooKeeper answers at {hosts}{reason}"


def _end_at(address: tuple[str, int], request: bytes, secured: "Wrap | None") -> bool:
    """Connect as the session and close it; False if there is none. Raises OSError to try again."""
    plain = socket.create_connection(address, ATTEMPT_S)
    with plain, secured(plain, address[0]) if secured else plain as connection:
        connection.sendall(request)
        _, granted_ms, session = struct.unpack_from("!iiq", _frame(connection, 16))
        if granted_ms <= 0 or session == 0:
            return False
        connection.sendall(_CLOSE_SESSION)
        xid, _, error = struct.unpack_from("!iqi", _frame(connection, 16))
        if (xid, error) != (1, 0):
            raise ConnectionError("another answer than that it is closed")
    return True


def _frame(connection: socket.socket, least: int) -> bytes:
    (length,) = struct.unpack("!i", _exactly(connection, 4))
    if not least <= length <= _FRAME_BYTES_MAX:
        raise ConnectionError("no answer of a ZooKeeper")
    return _exactly(connection, length)


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        data = connection.recv(count - len(received))
        if not data:
            raise ConnectionError("it hung up")
        received += data
    return received


def _buffer(data: bytes) -> bytes:
    return struct.pack("!i", len(data)) + data


def _say(message: str, shape: str) -> None:
    """One line on standard error, in the shape of the broker's own (`barnabas.log.format`)."""
    line = f"barnabas: {message}"
    if shape == "json":
        import json
        from datetime import UTC, datetime

        now = datetime.now(tz=UTC).isoformat()
        entry = {"level": "WARNING", "message": message, "logger": "supervisor", "time": now}
        line = json.dumps(entry)
    try:
        os.write(2, f"{line}\n".encode())
    except OSError:  # Standard error is closed.
        pass


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
