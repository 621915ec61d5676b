"""The server's state for one host name. Tests give each run its own name."""

from __future__ import annotations

import threading

# How long a thread waits for the client or the test, in seconds. Long enough for a busy machine, and short
# enough that threads end soon after the tests.
PATIENCE = 20.0


class Late:
    """The announcement of data that a scenario sends only when the test releases it (`Host.release`)."""

    def __init__(self) -> None:
        # Set when the test has released the data: the scenario must send it now.
        self.due = threading.Event()
        # Set by the scenario when it has sent the data.
        self.done = threading.Event()


class Host:
    """The state of one host name. Its methods may be called from any thread."""

    def __init__(self, name: str) -> None:
        # The first label of the host name.
        self.name = name
        # The name of the scenario.
        self.scenario = name.split("--")[0]
        self._lock = threading.Condition()
        # The record that the test reads: the method and the number of each request, and lines of scenarios.
        self._received: list[str] = []
        self._connections = 0
        self._tunnels = 0
        # The announcements that the test has not released.
        self._late: list[Late] = []
        # The bytes that the scenario "h2-script" sends.
        self.script = b""

    def connected(self) -> int:
        """Counts a connection; returns its number, from 1."""
        with self._lock:
            self._connections += 1
            return self._connections

    def tunneled(self) -> int:
        """Counts a tunnel; returns its number, from 1."""
        with self._lock:
            self._tunnels += 1
            return self._tunnels

    def note(self, line: str) -> None:
        """Adds a line to the record that the test reads, normally the method and the number of a request."""
        with self._lock:
            self._received.append(line)
            self._lock.notify_all()

    def received(self) -> list[str]:
        """The requests so far, in their order."""
        with self._lock:
            return list(self._received)

    def wait_for_requests(self, count: int, limit: float) -> None:
        """Waits until `count` requests have come, at most for `limit` seconds."""
        with self._lock:
            self._lock.wait_for(lambda: len(self._received) >= count, limit)

    def late(self) -> Late:
        """Announces data that the caller will send when the test releases it."""
        late = Late()
        with self._lock:
            self._late.append(late)
        return late

    def release(self) -> int:
        """Releases all announced data and waits until it is sent. Returns the number of announcements."""
        with self._lock:
            due, self._late = self._late, []
        for late in due:
            late.due.set()
        for late in due:
            late.done.wait(PATIENCE)
        return len(due)


# The state of each host, by the first label of its name.
_hosts: dict[str, Host] = {}
_hosts_lock = threading.Lock()


def host(name: str) -> Host:
    """Returns the state of a host. Only the first label of its name counts; a port may follow the name."""
    label = name.split(":")[0].split(".")[0].lower()
    with _hosts_lock:
        if label not in _hosts:
            _hosts[label] = Host(label)
        return _hosts[label]
