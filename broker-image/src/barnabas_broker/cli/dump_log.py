"""`barnabas dump-log`: what is in the files of a data directory.

The text is laid out as Apache's DumpLogSegments lays it out, so that what people know how to read,
and what their scripts look for, is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from barnabas_broker.cli.coordinator_records import Decoder, NoKeyError, offsets, transactions
from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.output import output_option, record_line
from barnabas_broker.cli.records import json_value
from barnabas_broker.log import batches, dump, segment_stats
from barnabas_broker.log.batches import CorruptSegmentError
from barnabas_broker.log.epochs import EpochEntry
from barnabas_broker.log.files import DataFile
from barnabas_broker.log.producer_state import ProducerEntry
from barnabas_broker.log.transaction_index import AbortedTransaction

Fields = dict[str, Any]

DECODERS: dict[str, tuple[str, Decoder]] = {
    "--offsets-decoder": ("__consumer_offsets", offsets),
    "--transaction-log-decoder": ("__transaction_state", transactions),
}
"""By option: the topic whose records it decodes, and how."""

# Where DumpLogSegments' name of a field is not ours with the underscores taken out.
APACHE_NAMES = {
    "codec": "compresscodec",
    "valid": "isvalid",
    "transactional": "isTransactional",
    "control": "isControl",
    "leader_epoch": "partitionLeaderEpoch",
    "log_starting_offset": "Log starting offset",
}


def decoder_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that decode the records of the coordinators' topics, and print them so."""
    for name, (topic, _) in reversed(DECODERS.items()):
        command = click.option(
            name, "decoder", flag_value=name, help=f"Print the records, as those of {topic}."
        )(command)
    return command


@click.command()
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--print-data-log", is_flag=True, help="Print the records with keys and values.")
@click.option("--deep", is_flag=True, help="Print what is known of each record, not its contents.")
@click.option("--index-sanity-check", is_flag=True, help="Only what start-up checks of an index.")
@click.option(
    "--verify-index-only", is_flag=True, help="Only say where an index contradicts its log."
)
@click.option(
    "--summary", is_flag=True, help="Of a .log file: records, batches, compression, times."
)
@click.option("--max-bytes", type=click.IntRange(min=1), help="Look no further into a .log file.")
@decoder_options
@output_option(plain=("text",), many=True)
def dump_log(files: tuple[Path, ...], *, output: str, **options: Any) -> None:
    """Show what is in the files of a data directory.

    Segments, indexes, producer snapshots and leader epochs, of a broker that runs or not.
    Exits with 1 if anything in them does not fit.
    """
    dump_files(files, output=output, **options)


def dump_files(files: Sequence[Path], *, output: str, **options: Any) -> None:
    """Print the files; CommandError where one cannot be read or something in one does not fit."""
    for path in files:
        _kind(path, options)
    problems = 0
    for path in files:
        if output == "text":
            click.echo(f"Dumping {path}")
        try:
            for fields in _kind(path, options)(path, options):
                problems += "problem" in fields
                click.echo(_as_json(path, fields) if output == "json" else _as_text(fields))
        except BrokenPipeError:
            raise  # The reader has seen enough; the command ends quietly.
        except OSError as error:
            raise CommandError(f"cannot read {path}: {error.strerror or error}") from None
    if problems:
        raise CommandError(f"{problems} {'problem' if problems == 1 else 'problems'} found")


Reader = Callable[[Path, dict[str, Any]], Iterator[Fields]]


def _kind(path: Path, options: dict[str, Any]) -> Reader:
    """How to read a file with this name, with these options."""
    if path.suffix in (".index", ".timeindex"):
        return _sanity if options["index_sanity_check"] else _index
    reader = READERS.get(path.suffix) or READERS.get(path.name)
    if reader is None:
        known = (
            ".log, .index, .timeindex, .txnindex, .snapshot, leader-epoch-checkpoint "
            f"or {segment_stats.FILE_NAME}"
        )
        raise InputError(f"{path} is none of {known}")
    return reader


def _log(path: Path, options: dict[str, Any]) -> Iterator[Fields]:
    """Batches, and their records where asked for; or only what they come to."""
    if options.get("summary"):
        yield _summary(path)
        return
    _, decode = DECODERS.get(options["decoder"]) or ("", None)
    with_data = options["print_data_log"] or decode is not None
    deep = options["deep"] or with_data
    if path.stem.isdigit():
        yield {"log_starting_offset": int(path.stem)}
    for row in dump.dump_log(path, deep=deep, max_bytes=options["max_bytes"]):
        if isinstance(row, dump.BatchRow):
            yield _batch(row)
            if not row.valid:
                position = row.batch.position
                yield {"problem": "the checksum does not match", "position": position}
        elif isinstance(row, dump.RecordRow):
            yield _record(row, with_data=with_data, decode=decode)
        else:
            yield _problem(row)


def _summary(path: Path) -> Fields:
    file = DataFile.open(path, writable=False)
    try:
        found = segment_stats.count(file)
    except CorruptSegmentError as error:
        return {"problem": error.reason, "position": error.position}
    raw_bytes = file.size + found.saved_bytes
    return {
        "records": found.records,
        "batches": found.batches,
        "raw_bytes": raw_bytes,
        "stored_bytes": file.size,
        "compression_ratio": round(file.size / raw_bytes, 2) if raw_bytes else None,
        "average_record_bytes": round(raw_bytes / found.records) if found.records else None,
        "first_timestamp": found.first_timestamp,
        "last_timestamp": max((batch.max_timestamp for batch in batches.walk(file)), default=-1),
        "codecs": ",".join(found.codec_names),
    }


def _index(path: Path, options: dict[str, Any]) -> Iterator[Fields]:
    """Entries and how they contradict the log; only the latter with --verify-index-only."""
    rows: Iterable[dump.OffsetRow | dump.TimeRow | dump.Problem]
    rows = dump.dump_offset_index(path) if path.suffix == ".index" else dump.dump_time_index(path)
    for row in rows:
        if isinstance(row, dump.Problem):
            yield _problem(row)
            continue
        if not options["verify_index_only"]:
            if isinstance(row, dump.OffsetRow):
                yield {"offset": row.offset, "position": row.position}
            else:
                yield {"timestamp": row.timestamp, "offset": row.offset}
        if row.problem:
            yield {"problem": row.problem, "offset": row.offset}


def _sanity(path: Path, _: dict[str, Any]) -> Iterator[Fields]:
    problem = dump.check_index(path)
    yield {"problem": problem} if problem else {"sane": True}


def _snapshot(path: Path, _: dict[str, Any]) -> Iterator[Fields]:
    for row in dump.dump_snapshot(path):
        yield _producer(row) if isinstance(row, ProducerEntry) else _problem(row)


def _transactions(path: Path, _: dict[str, Any]) -> Iterator[Fields]:
    for row in dump.dump_transaction_index(path):
        yield row._asdict() if isinstance(row, AbortedTransaction) else _problem(row)


def _epochs(path: Path, _: dict[str, Any]) -> Iterator[Fields]:
    for row in dump.dump_epochs(path):
        yield row._asdict() if isinstance(row, EpochEntry) else _problem(row)


def _segment_stats(path: Path, _: dict[str, Any]) -> Iterator[Fields]:
    for base, (size, found) in segment_stats.decode(path.read_bytes()).items():
        yield {
            "base_offset": base,
            "records": found.records,
            "batches": found.batches,
            "raw_bytes": size + found.saved_bytes,
            "stored_bytes": size,
            "first_timestamp": found.first_timestamp,
            "codecs": ",".join(found.codec_names),
        }


READERS: dict[str, Reader] = {
    ".log": _log,
    segment_stats.FILE_NAME: _segment_stats,
    ".snapshot": _snapshot,
    ".txnindex": _transactions,
    "leader-epoch-checkpoint": _epochs,
}


def _batch(row: dump.BatchRow) -> Fields:
    batch = row.batch
    return {
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "count": batch.record_count,
        "base_sequence": batch.base_sequence,
        "last_sequence": row.last_sequence,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "leader_epoch": batch.leader_epoch,
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "delete_horizon_ms": row.delete_horizon_ms,
        "position": batch.position,
        "timestamp_type": row.timestamp_type,
        "timestamp": batch.max_timestamp,
        "size": batch.size,
        "magic": batch.magic,
        "codec": row.codec,
        "crc": batch.crc,
        "valid": row.valid,
    }


def _record(row: dump.RecordRow, *, with_data: bool, decode: Decoder | None) -> Fields:
    kind = dump.BatchRow(row.batch, valid=True).timestamp_type
    fields: Fields = {
        "record": True,
        "offset": row.offset,
        "timestamp_type": kind,
        "timestamp": row.timestamp,
        "key_size": -1 if row.key is None else len(row.key),
        "value_size": -1 if row.value is None else len(row.value),
        "sequence": row.sequence,
        "header_keys": [name for name, _ in row.headers],
    }
    if row.marker is not None:
        fields["end_txn_marker"] = "COMMIT" if row.marker.commit else "ABORT"
        fields["coordinator_epoch"] = row.marker.coordinator_epoch
    elif with_data:
        try:
            key, payload = decode(row) if decode is not None else (row.key, row.value)
        except NoKeyError as error:
            return {"problem": str(error), "offset": row.offset}
        fields |= {"key": key, "payload": payload}
        fields["headers"] = [[name, value] for name, value in row.headers]
    return fields


def _producer(entry: ProducerEntry) -> Fields:
    last = entry.batches[-1] if entry.batches else None
    return {
        "producer_id": entry.producer_id,
        "producer_epoch": entry.epoch,
        "coordinator_epoch": entry.coordinator_epoch,
        "current_txn_first_offset": entry.txn_first_offset,
        "last_timestamp": entry.last_timestamp,
        "first_sequence": last.first_sequence if last else -1,
        "last_sequence": last.last_sequence if last else -1,
        "last_offset": last.last_offset if last else -1,
    }


def _problem(row: dump.Problem) -> Fields:
    return {"problem": row.message, "position": row.position}


def _as_json(path: Path, fields: Fields) -> str:
    row = {"file": str(path), **fields}
    return record_line(json.dumps(row, default=json_value, ensure_ascii=False))


def _as_text(fields: Fields) -> str:
    if "problem" in fields:
        where = next((f" at {name} {fields[name]}" for name in ("position", "offset")
                      if fields.get(name) is not None), "")  # fmt: skip
        return f"PROBLEM{where}: {fields['problem']}"
    # The type of a timestamp is the name it is printed under.
    shown = {name: value for name, value in fields.items() if name not in ("record", "headers")}
    stamp = shown.pop("timestamp_type", None)
    words = [
        f"{stamp if stamp and name == 'timestamp' else _apache_name(name)}: {_apache_value(value)}"
        for name, value in shown.items()
        if not (value is None and name in ("key", "payload"))
    ]
    return ("| " if "record" in fields else "") + " ".join(words)


def _apache_name(name: str) -> str:
    first, *others = name.split("_")
    return APACHE_NAMES.get(name) or first + "".join(word.capitalize() for word in others)


def _apache_value(value: Any) -> str:
    if value is None:
        return "OptionalLong.empty"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{','.join(value)}]" if isinstance(value, list) else str(value)
