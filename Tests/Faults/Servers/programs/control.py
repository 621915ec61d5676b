"""How the fault matrix tells a server which fault to play.

The tests write a command to a file, a number and a word, and send SIGUSR1 after each change of the file.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def block() -> None:
    """Reserves the signal for `obey`. Call this before starting a second thread: threads inherit the mask."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})


def obey(file: str, apply: Callable[[str], None]) -> None:
    """Prints "ready" and waits for commands. Does not return.

    For each command, applies its word and then prints "done" and its number.
    """
    # The file is opened once: later there may be no free descriptor.
    control = os.open(file, os.O_RDONLY | os.O_CREAT, 0o600)
    print("ready", flush=True)
    while True:
        signal.sigwait({signal.SIGUSR1})
        number, word = os.pread(control, 100, 0).decode().split()
        apply(word)
        print("done", number, flush=True)
