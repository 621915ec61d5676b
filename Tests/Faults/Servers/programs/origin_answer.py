"""Requests and right responses.

A path is /KIND/ID. For the kind "down", the body of the response repeats a line with the id. For the kind
"answer", the body of the request must repeat a line with the id, and the response says whether it does.
"""

from __future__ import annotations

# The size of the response's body for the kind "down", in bytes.
DOWN = 131_072


def pattern(identifier: str, size: int) -> bytes:
    """A body of `size` bytes that repeats a line with the id."""
    line = identifier.encode() + b"\n"
    return (line * (size // len(line) + 1))[:size]


class Question:
    """A request whose head has arrived."""

    def __init__(self, path: str) -> None:
        parts = path.split("/")
        self.kind = parts[1] if len(parts) > 1 else ""
        self.id = parts[2] if len(parts) > 2 else "-"
        # The body of the request, as far as it has arrived.
        self.received = bytearray()

    def answer(self) -> bytes:
        """The body of the right response."""
        if self.kind == "down":
            return pattern(self.id, DOWN)
        right = self.received == pattern(self.id, len(self.received))
        return f"{self.id} {len(self.received)} {'whole' if right else 'wrong'}\n".encode()
