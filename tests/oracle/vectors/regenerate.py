"""Make the vector files anew from kafka-clients: needs a JDK, Maven and its repository.

Run as ``python -m tests.oracle.vectors.regenerate`` from the project's root.
"""

import gzip
import subprocess

from tests.oracle.vectors import FOLDER, MESSAGE_VERSIONS, RECORDS_VERSION

BUILD = FOLDER.parents[2] / ".cache" / "vectors"
VARIANTS = 5


def generate(version: str, main_class: str, name: str) -> None:
    """Build the generators against one kafka-clients version and store what one of them prints."""
    classpath_file = BUILD / version / "classpath"
    maven = ["mvn", "-q", "-B", f"-Dkafka.version={version}", "-Precords"]
    if version != RECORDS_VERSION:
        maven.pop()
    goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={classpath_file}"]
    subprocess.run([*maven, *goals], cwd=FOLDER, check=True, stdout=subprocess.DEVNULL)
    classpath = f"{BUILD / version / 'classes'}:{classpath_file.read_text()}"
    java = ["java", f"-Dvariants={VARIANTS}", "-cp", classpath, f"barnabas.vectors.{main_class}"]
    lines = subprocess.run(java, check=True, stdout=subprocess.PIPE).stdout
    path = FOLDER / f"{name}.jsonl.gz"
    # Without a name and a time in the header the same vectors always make the same file.
    path.write_bytes(gzip.compress(lines, compresslevel=9, mtime=0))
    count = lines.count(b"\n")
    print(f"{path.name}: {count} vectors, {path.stat().st_size} bytes")


def main() -> None:
    """Generate every file the tests read."""
    for version in MESSAGE_VERSIONS:
        generate(version, "MessageVectors", f"messages-{version}")
    generate(RECORDS_VERSION, "RecordVectors", "records")


if __name__ == "__main__":
    main()
