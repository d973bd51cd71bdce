"""The wire's smallest pieces: numbers of variable length, and sections of tagged fields (KIP-482).

An unsigned number of variable length has groups of seven bits, low group first, the high bit of a
byte set while more follow. Lengths of the flexible encoding are such numbers, of at most 32 bits.
Fixed-size numbers are big-endian and left to `struct`.

Readers take any buffer of unsigned bytes and return the position after what they read. Reading past
the end raises IndexError; a number that does not end in time raises ValueError. The codecs turn
both into their own errors.
"""

Buffer = bytes | bytearray | memoryview


def read_uvarint(data: Buffer, position: int) -> tuple[int, int]:
    """An unsigned number of at most 32 bits."""
    # One to three bytes, which reach 2 MiB, are read without a loop: lengths of records.
    first = data[position]
    if first < 0x80:
        return first, position + 1
    second = data[position + 1]
    value = first & 0x7F | (second & 0x7F) << 7
    if second < 0x80:
        return value, position + 2
    third = data[position + 2]
    value |= (third & 0x7F) << 14
    if third < 0x80:
        return value, position + 3
    value |= (data[position + 3] & 0x7F) << 21
    if data[position + 3] < 0x80:
        return value, position + 4
    # The fifth byte has room for four more bits, and none may follow.
    if data[position + 4] > 0x0F:
        raise ValueError("a variable-length number exceeds 32 bits")
    return value | data[position + 4] << 28, position + 5


def uvarint(value: int) -> bytes:
    """The encoding of an unsigned number; raises ValueError for a negative one."""
    if value < 0:
        raise ValueError(f"{value} is negative")
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x20_0000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


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
