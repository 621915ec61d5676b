"""How the fault matrix commands a server: a file with a number and a word, and SIGUSR1 after each change."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def block() -> None:
    """Reserves the signal for `obey`. Call this before starting a second thread: threads inherit the mask."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})


def obey(file: str, apply: Callable[[str], None]) -> None:
    """Applies each word and then prints its number. Does not return."""
    # The file is opened once: later there may be no free descriptor.
    control = os.open(file, os.O_RDONLY | os.O_CREAT, 0o600)
    print("ready", flush=True)
    while True:
        signal.sigwait({signal.SIGUSR1})
        number, word = os.pread(control, 100, 0).decode().split()
        apply(word)
        print("done", number, flush=True)
