"""The columns of what pipelines write: a promise to every reader of the files."""

from __future__ import annotations

from typing import Final

# Name and type in Spark's words, in order. Key and value as they are in Kafka: bytes, or null.
ARCHIVE: Final = (
    ("topic", "string"),
    ("partition", "int"),
    ("offset", "bigint"),
    ("timestamp", "timestamp"),
    ("key", "binary"),
    ("value", "binary"),
    ("headers", "array<struct<key:string,value:binary>>"),
)
