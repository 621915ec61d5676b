"""Requests and right responses. A path is /KIND/ID; bodies repeat a line with the id."""

from __future__ import annotations

DOWN = 131_072


def pattern(identifier: str, size: int) -> bytes:
    """The body of `size` bytes for an id."""
    line = identifier.encode() + b"\n"
    return (line * (size // len(line) + 1))[:size]


class Question:
    """A request whose head has arrived."""

    def __init__(self, path: str) -> None:
        parts = path.split("/")
        self.kind = parts[1] if len(parts) > 1 else ""
        self.id = parts[2] if len(parts) > 2 else "-"
        self.received = bytearray()

    def answer(self) -> bytes:
        """The body of the right response."""
        if self.kind == "down":
            return pattern(self.id, DOWN)
        right = self.received == pattern(self.id, len(self.received))
        return f"{self.id} {len(self.received)} {'whole' if right else 'wrong'}\n".encode()
