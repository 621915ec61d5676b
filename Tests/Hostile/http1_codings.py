"""Coded bodies that are cut, damaged or followed by further bytes (RFC 9110, section 8.4)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from http1 import Exchange
from scenarios import http1, http1_bytes


def gzip(data: bytes) -> bytes:
    """Encodes with gzip (RFC 1952): 10 bytes of head, deflate data, 4 bytes of CRC, 4 bytes of length."""
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


def deflate(data: bytes) -> bytes:
    """Encodes with the coding `deflate` (RFC 1950): 2 bytes of head, deflate data, 4 bytes of Adler-32."""
    return zlib.compress(data)


def raw_deflate(data: bytes) -> bytes:
    """Encodes with raw deflate (RFC 1951). Some servers wrongly send this as the coding `deflate`."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def brotli(data: bytes) -> bytes:
    """Encodes with brotli (RFC 7932): one uncompressed meta-block, and an empty last meta-block."""
    # From the lowest bit: WBITS 16 (1 bit), ISLAST 0, MNIBBLES 4 (2 bits), MLEN - 1 (16 bits), ISUNCOMPRESSED 1.
    head = len(data) - 1 << 4 | 1 << 20
    return head.to_bytes(3, "little") + data + b"\x03"


def zstd(data: bytes) -> bytes:
    """Encodes with zstd (RFC 8878), without compression.

    Returns the magic number, the head of a single segment with its size in 1 or 4 bytes, and one raw block.
    """
    size = b"\x20" + bytes([len(data)]) if len(data) < 256 else b"\xa0" + len(data).to_bytes(4, "little")
    return b"\x28\xb5\x2f\xfd" + size + (len(data) << 3 | 1).to_bytes(3, "little") + data


def content(body: bytes) -> bytes:
    """The content before it is coded: the right body and more text, so that there are many places to cut."""
    return body + b" and some more of it, which is not all the same: 0123456789 abcdefghijklmnopqrstuvwxyz"


CODERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip, "deflate": deflate, "br": brotli, "zstd": zstd}


def send_coded(exchange: Exchange, coding: str, data: bytes, framing: str) -> None:
    """Sends a coded body in a right response.

    `framing` says how the client finds the end of the body: `length`, `chunked` or `close`.
    """
    line = b"Content-Encoding: " + coding.encode()
    if framing == "length":
        exchange.send(exchange.right(line, body=data))
    elif framing == "chunked":
        half = len(data) // 2
        chunks = [exchange.chunk(part) for part in (data[:half], data[half:]) if part]
        exchange.send(exchange.head(line, b"Transfer-Encoding: chunked") + b"".join(chunks) + b"0\r\n\r\n")
    else:
        exchange.send(exchange.head(line, b"Connection: close") + data)
        exchange.close()


def coded(name: str, coding: str, change: Callable[[bytes], bytes], framing: str) -> None:
    """Adds a scenario whose response has a coded body whose bytes `change` has changed."""

    @http1(name)
    def play(exchange: Exchange) -> None:
        send_coded(exchange, coding, change(CODERS[coding](content(exchange.body))), framing)


FRAMINGS = ("length", "chunked", "close")
for each_coding in CODERS:
    for each_framing in FRAMINGS:
        coded(f"{each_coding}-whole-{each_framing}", each_coding, lambda data: data, each_framing)
        coded(f"{each_coding}-cut-in-data-{each_framing}", each_coding, lambda data: data[:40], each_framing)
        coded(f"{each_coding}-cut-at-the-last-byte-{each_framing}", each_coding, lambda data: data[:-1], each_framing)
        coded(f"{each_coding}-trailing-bytes-{each_framing}", each_coding, lambda data: data + b"forged", each_framing)
    coded(f"{each_coding}-cut-in-head", each_coding, lambda data: data[:1], "length")
    coded(f"{each_coding}-empty", each_coding, lambda data: b"", "length")
    coded(f"{each_coding}-empty-close", each_coding, lambda data: b"", "close")
    coded(f"{each_coding}-is-text", each_coding, lambda data: b"this is not coded at all", "length")


def coded_large(name: str, coding: str, change: Callable[[bytes, bytes], bytes], framing: str) -> None:
    """Adds a scenario whose response has a changed coded body that decodes to more than a client reads at once.

    `change` gets the coded body and a second coded stream, of which it may append a part.
    """

    @http1(name)
    def play(exchange: Exchange) -> None:
        data = CODERS[coding](content(exchange.body) + bytes(20_000))
        send_coded(exchange, coding, change(data, CODERS[coding](bytes(20_000))), framing)


for each_coding in CODERS:
    for each_framing in FRAMINGS:
        name = f"{each_coding}-large"
        coded_large(f"{name}-whole-{each_framing}", each_coding, lambda data, more: data, each_framing)
        coded_large(f"{name}-trailing-byte-{each_framing}", each_coding, lambda data, more: data + b"x", each_framing)
        coded_large(
            f"{name}-trailing-damaged-stream-{each_framing}",
            each_coding,
            lambda data, more: data + b"\xff" + more[1:],
            each_framing,
        )
        coded_large(f"{name}-cut-{each_framing}", each_coding, lambda data, more: data[:-1], each_framing)

coded("gzip-cut-after-head", "gzip", lambda data: data[:10], "length")
coded("gzip-cut-before-crc", "gzip", lambda data: data[:-8], "length")
coded("gzip-cut-in-crc", "gzip", lambda data: data[:-6], "length")
coded("gzip-cut-before-length", "gzip", lambda data: data[:-4], "length")
coded("gzip-wrong-crc", "gzip", lambda data: data[:-8] + b"\0\0\0\0" + data[-4:], "length")
coded("gzip-wrong-length", "gzip", lambda data: data[:-4] + b"\0\0\0\0", "length")
coded("gzip-damaged", "gzip", lambda data: data[:30] + b"\xff\xff\xff\xff" + data[34:], "length")
coded("gzip-trailing-zero", "gzip", lambda data: data + b"\0", "length")
coded("gzip-two-members", "gzip", lambda data: data + gzip(b", second member"), "length")
coded("gzip-second-member-cut", "gzip", lambda data: data + gzip(b", second member")[:-3], "length")
coded("deflate-cut-after-head", "deflate", lambda data: data[:2], "length")
coded("deflate-cut-before-adler", "deflate", lambda data: data[:-4], "length")
coded("deflate-wrong-adler", "deflate", lambda data: data[:-4] + b"\0\0\0\0", "length")
coded("br-cut-after-head", "br", lambda data: data[:3], "length")
coded("zstd-cut-after-head", "zstd", lambda data: data[:9], "length")


@http1("deflate-raw")
def deflate_raw(exchange: Exchange) -> None:
    send_coded(exchange, "deflate", raw_deflate(content(exchange.body)), "length")


@http1("deflate-raw-cut")
def deflate_raw_cut(exchange: Exchange) -> None:
    send_coded(exchange, "deflate", raw_deflate(content(exchange.body))[:-3], "length")


@http1("gzip-twice")
def gzip_twice(exchange: Exchange) -> None:
    send_coded(exchange, "gzip, gzip", gzip(gzip(content(exchange.body))), "length")


@http1("gzip-twice-inner-cut")
def gzip_twice_inner_cut(exchange: Exchange) -> None:
    send_coded(exchange, "gzip, gzip", gzip(gzip(content(exchange.body))[:-9]), "length")


@http1("gzip-on-two-lines")
def gzip_on_two_lines(exchange: Exchange) -> None:
    send_coded(exchange, "gzip\r\nContent-Encoding: gzip", gzip(gzip(content(exchange.body))), "length")


@http1("gzip-20-times")
def gzip_20_times(exchange: Exchange) -> None:
    data = content(exchange.body)
    for _ in range(20):
        data = gzip(data)
    send_coded(exchange, ", ".join(["gzip"] * 20), data, "length")


@http1("coding-unknown")
def coding_unknown(exchange: Exchange) -> None:
    send_coded(exchange, "odd", content(exchange.body), "length")


@http1("gzip-shorter-than-length")
def gzip_shorter_than_length(exchange: Exchange) -> None:
    """The coded body is whole, but Content-Length announces 9 more bytes, which do not come."""
    data = gzip(content(exchange.body))
    exchange.send(exchange.head(b"Content-Encoding: gzip", b"Content-Length: %d" % (len(data) + 9)) + data)
    exchange.close()


def member(head: bytes) -> bytes:
    """A gzip member: `head`, an empty last block, and zeros for the checksum and the length.

    `head` has the header of the member. In `gzip-bomb` it has blocks of data too.
    """
    return head + b"\x03\x00" + struct.pack("<II", 0, 0)


# Rare headers of members (RFC 1952, section 2.3): a file name of a megabyte, and a reserved flag.
http1_bytes(
    "gzip-long-name",
    lambda exchange: exchange.right(
        b"Content-Encoding: gzip",
        body=member(b"\x1f\x8b\x08\x08\0\0\0\0\0\x03" + b"a" * (1 << 20) + b"\0"),
    ),
)
http1_bytes(
    "gzip-reserved-flag",
    lambda exchange: exchange.right(b"Content-Encoding: gzip", body=member(b"\x1f\x8b\x08\x80\0\0\0\0\0\x03")),
)


@http1("gzip-bomb")
def gzip_bomb(exchange: Exchange) -> None:
    """256 MiB of zeros in 260 kB: the same compressed data 256 times, which refers to no bytes before it."""
    packer = zlib.compressobj(wbits=-15)
    zeros = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    # The checksum is wrong: every client stops before it reads the checksum.
    send_coded(exchange, "gzip", member(b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + zeros * 256), "length")
