"""Log compaction: of every key the last value is kept, and nothing else changes place."""
