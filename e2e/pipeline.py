"""A KafkaPipeline as a person looks at it: its status, and the files that it writes."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e import kafka
from e2e.cluster import Cluster
from tests.waiting import SETTLE


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline that writes to a directory under /data, where its volume is."""

    cluster: Cluster
    namespace: str
    name: str
    directory: str

    @property
    def pod(self) -> str:
        """The name of its pod."""
        return f"{self.name}-pipeline-0"

    def status(self) -> dict[str, Any]:
        """The status of its resource."""
        found = self.cluster.get("kafkapipeline", self.name, namespace=self.namespace) or {}
        status: dict[str, Any] = found.get("status", {})
        return status

    def wait_until_landed(self, rows: int, *, within: float = SETTLE) -> None:
        """Until it has written so many rows since it began."""
        self.cluster.wait_for(
            f"{rows} rows that the pipeline has written",
            self.status,
            until=lambda status: int(status.get("rows", 0)) >= rows,
            namespaces=(self.namespace,),
            within=within,
        )

    def landed(self, into: Path) -> dict[kafka.Place, kafka.Record]:
        """The rows of its files by place, copied out of its volume."""
        import duckdb

        content = self.cluster.kubectl_bytes(
            "exec", "-n", self.namespace, self.pod, "--", "tar", "-C", "/data", "-c", self.directory
        )
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(into, filter="data")
        files = str(into / self.directory / "batch=*" / "*.parquet")
        query = 'select partition, "offset", key, value from read_parquet(?)'
        rows = duckdb.connect().execute(query, [files]).fetchall()
        places = {(int(row[0]), int(row[1])): (row[2] or b"", row[3] or b"") for row in rows}
        if len(places) != len(rows):
            raise AssertionError(f"{len(rows)} rows stand for {len(places)} records")
        return places
