"""The wire's smallest pieces: variable-length integers, and arrays of fixed-size numbers.

Fixed-size numbers are big-endian and left to `struct`. Here is what `struct` cannot do:

* `uvarint`: an unsigned integer in groups of seven bits, low group first, the high bit of a byte
  set while more follow. Lengths of the flexible encoding (KIP-482) are uvarints, at most 32 bits.
* `varint`, `varlong`: the same over the zig-zag form (0, -1, 1, -2, ...), as inside records of
  format 2.

Readers take any buffer of unsigned bytes and return `(value, position after it)`. Reading past the
end raises IndexError; a number that does not end in time raises ValueError. The codecs turn both
into their own errors.
"""

from typing import Final

Buffer = bytes | bytearray | memoryview

UVARINT32_BYTES_MAX: Final = 5
VARLONG_BYTES_MAX: Final = 10


def read_uvarint(data: Buffer, position: int) -> tuple[int, int]:
    """An unsigned number of at most 32 bits."""
    value = 0
    for shift in range(0, 7 * UVARINT32_BYTES_MAX, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFF_FFFF:
                break
            return value, position
    raise ValueError("a variable-length number exceeds 32 bits")


def uvarint(value: int) -> bytes:
    """The encoding of an unsigned number; raises ValueError for a negative one."""
    if value < 0:
        raise ValueError(f"{value} is negative")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_varlong(data: Buffer, position: int) -> tuple[int, int]:
    """A signed number of at most 64 bits; a 32-bit varint reads the same way."""
    value = 0
    for shift in range(0, 7 * VARLONG_BYTES_MAX, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFF_FFFF_FFFF_FFFF:
                break
            return value >> 1 ^ -(value & 1), position
    raise ValueError("a variable-length number exceeds 64 bits")


def varlong(value: int) -> bytes:
    """The zig-zag encoding of a signed 64-bit number; a 32-bit varint is the same bytes."""
    return uvarint((value << 1 ^ value >> 63) & 0xFFFF_FFFF_FFFF_FFFF)


def skip_tagged_fields(data: Buffer, position: int) -> int:
    """The position after a section of tagged fields, none of which this side knows (KIP-482).

    Unknown fields are how newer peers extend a message; they are skipped, never refused.
    """
    count, position = read_uvarint(data, position)
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
        if position > len(data):
            raise IndexError("a tagged field ends after the message")
    return position
