"""The record code of kafka-python and aiokafka, as second opinions on ours."""

import warnings

import aiokafka.codec as aiokafka_codec
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as AioLegacyBuilder
from aiokafka.record.memory_records import MemoryRecords as AioRecords

with warnings.catch_warnings():
    # kafka-python reads its schemas in a way newer Pythons deprecate; that is not ours to mend.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.codec as kafka_codec
    from kafka.record.memory_records import MemoryRecords as KafkaRecords
    from kafka.record.memory_records import MemoryRecordsBuilder as KafkaBuilder

__all__ = [
    "AioBatchBuilder",
    "AioLegacyBuilder",
    "AioRecords",
    "KafkaBuilder",
    "KafkaRecords",
    "aiokafka_codec",
    "kafka_codec",
]
