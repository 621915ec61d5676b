"""How the fault matrix tells a server what to do: a file with a number and a word, and SIGUSR1 when it has changed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def block() -> None:
    """Keeps the signal for `obey`. To be called before there is a second thread: threads inherit it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})


def obey(file: str, apply: Callable[[str], None]) -> None:
    """Applies each word and prints its number once that is done. Does not return."""
    # Opened once: later there may be no descriptor left.
    control = os.open(file, os.O_RDONLY | os.O_CREAT, 0o600)
    print("ready", flush=True)
    while True:
        signal.sigwait({signal.SIGUSR1})
        number, word = os.pread(control, 100, 0).decode().split()
        apply(word)
        print("done", number, flush=True)
