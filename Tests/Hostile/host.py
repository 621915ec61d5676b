"""The server's state for one host name. Tests give each run its own name."""

from __future__ import annotations

import threading

# Long enough for a busy machine, short enough that no thread outlives the tests by much.
PATIENCE = 20.0


class Late:
    """Data that a scenario sends when the test releases it."""

    def __init__(self) -> None:
        self.due = threading.Event()
        self.done = threading.Event()


class Host:
    """The state of one host name. Its methods may be called from any thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.scenario = name.split("--")[0]
        self._lock = threading.Condition()
        self._received: list[str] = []
        self._connections = 0
        self._tunnels = 0
        self._late: list[Late] = []
        # What the scenario "h2-script" sends.
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
        """Adds a request to the record that the test reads."""
        with self._lock:
            self._received.append(line)
            self._lock.notify_all()

    def received(self) -> list[str]:
        """The requests so far, in their order."""
        with self._lock:
            return list(self._received)

    def wait_for_requests(self, count: int, limit: float) -> None:
        """Waits until this many requests have come, at most for this many seconds."""
        with self._lock:
            self._lock.wait_for(lambda: len(self._received) >= count, limit)

    def late(self) -> Late:
        """Announces data to send when the test releases it."""
        late = Late()
        with self._lock:
            self._late.append(late)
        return late

    def release(self) -> int:
        """Releases all announced data, waits until it is sent, and returns how many announcements there were."""
        with self._lock:
            due, self._late = self._late, []
        for late in due:
            late.due.set()
        for late in due:
            late.done.wait(PATIENCE)
        return len(due)


_hosts: dict[str, Host] = {}
_hosts_lock = threading.Lock()


def host(name: str) -> Host:
    """The state of a host by the first label of its name."""
    label = name.split(":")[0].split(".")[0].lower()
    with _hosts_lock:
        if label not in _hosts:
            _hosts[label] = Host(label)
        return _hosts[label]
