"""`make release`: everything of a release into dist/, from this checkout; publishes nothing.

Wheels and source distribution, SBOM, the gathered changelog, chart, manifests and, with `--images`,
the images by id, on a base by digest, with the file by which they are built for all platforms and
pushed; then SHA256SUMS and release.json, which name all of it.
docs/contributing/releasing.md says what a person does before and after.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
DIST: Final = ROOT / "dist"
UV: Final = ROOT / ".venv" / "bin" / "uv"
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
CIBUILDWHEEL: Final = "cibuildwheel==4.3.5"
CYCLONEDX: Final = "cyclonedx-bom==7.5.0"
TOWNCRIER: Final = "towncrier==26.9.0"
# As `CC`: the wheel is then the one for every machine.
NO_COMPILER: Final = "no-compiler-here"
CHUNK_BYTES: Final = 1 << 20
PLATFORMS: Final = ("linux/amd64", "linux/arm64")
# Attached to each image that is pushed: all that is in it, and how it was built.
ATTESTATIONS: Final = ("type=sbom", "type=provenance,mode=max")
BAKE_FILE: Final = "images.bake.json"
OCI: Final = "org.opencontainers.image"


class ReleaseError(Exception):
    """A part that could not be made."""


@dataclass(slots=True)
class Release:
    """What is made, and what this machine could not make."""

    version: str
    commit: str
    clean: bool
    epoch: str
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    images: dict[str, str] = field(default_factory=dict)
    # What they are built on, by digest; empty where this machine knows none.
    base: str = ""
    missing: list[str] = field(default_factory=list)


def run(*command: str | Path, **variables: str) -> str:
    """The standard output of a command; raises ReleaseError with all that it said."""
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        words = " ".join(map(str, command))
        raise ReleaseError(f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def begin() -> Release:
    """The version of pyproject.toml, at the commit of the checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return Release(
        version=project["version"],
        commit=run("git", "rev-parse", "HEAD").strip(),
        clean=not run("git", "status", "--porcelain").strip(),
        epoch=run("git", "log", "-1", "--format=%ct").strip(),
    )


def distributions(release: Release) -> None:
    """The source distribution, a wheel for each Python that is here, and the one without compiler.

    Those of this machine have its own platform's tag, and are for trying. A release has those of
    cibuildwheel (`--cibuildwheel`).
    """
    build: tuple[str | Path, ...] = (UV, "build", "--quiet", "--out-dir", DIST)
    epoch = {"SOURCE_DATE_EPOCH": release.epoch}
    run(*build, "--sdist", **epoch)
    for version in PYTHONS:
        try:
            python = run(UV, "python", "find", "--no-python-downloads", version).strip()
        except ReleaseError:
            release.missing.append(f"wheel for CPython {version}: this machine has none")
            continue
        run(*build, "--wheel", "--python", python, **epoch)
    run(*build, "--wheel", **epoch, CC=NO_COMPILER)


def distributions_of_cibuildwheel(release: Release) -> None:
    """Manylinux and musllinux wheels as `[tool.cibuildwheel]` says, in containers."""
    run(UV, "build", "--quiet", "--sdist", "--out-dir", DIST, SOURCE_DATE_EPOCH=release.epoch)
    tool = (UV, "tool", "run", "--from", CIBUILDWHEEL, "cibuildwheel")
    run(*tool, "--platform", "linux", "--output-dir", DIST, SOURCE_DATE_EPOCH=release.epoch)
    run(
        *(UV, "build", "--quiet", "--wheel", "--out-dir", DIST),
        SOURCE_DATE_EPOCH=release.epoch,
        CC=NO_COMPILER,
    )


def bill_of_materials(release: Release) -> None:
    """A CycloneDX SBOM of the distribution and what the lock file has it installed with."""
    place = ROOT / ".cache" / "release"
    shutil.rmtree(place, ignore_errors=True)
    try:
        locked = place / "requirements.txt"
        run(UV, "venv", "--quiet", "--python", sys.executable, place / "environment")
        python = place / "environment" / "bin" / "python"
        run(
            *(UV, "export", "--quiet", "--frozen", "--package", "barnabas", "--no-default-groups"),
            *("--no-emit-workspace", "--output-file", locked),
        )
        run(UV, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", locked)
        run(
            *(UV, "tool", "run", "--from", CYCLONEDX, "cyclonedx-py", "environment"),
            *("--pyproject", "pyproject.toml", "--output-reproducible", "--output-format", "JSON"),
            *("--output-file", DIST / f"barnabas-{release.version}.cdx.json", python),
            SOURCE_DATE_EPOCH=release.epoch,
        )
    finally:
        shutil.rmtree(place, ignore_errors=True)


def changelog(release: Release) -> None:
    """What changelog.d holds, as the section that the release will have in CHANGELOG.md."""
    date = run("git", "log", "-1", "--format=%cs").strip()
    section = run(
        *(UV, "tool", "run", "--from", TOWNCRIER, "towncrier", "build", "--draft"),
        *("--version", release.version, "--date", date),
    )
    (DIST / f"CHANGELOG-{release.version}.md").write_text(section.lstrip(), encoding="utf-8")


def chart(release: Release) -> None:
    """The packaged chart, and the manifests for those who do without Helm."""
    shutil.copy(
        ROOT / "manifests" / "install.yaml", DIST / f"barnabas-operator-{release.version}.yaml"
    )
    if shutil.which("helm") is None:
        release.missing.append("chart: helm is not installed")
        return
    versions = ("--version", release.version, "--app-version", release.version)
    run("helm", "package", "charts/barnabas-operator", "--destination", DIST, *versions)


def container_images(release: Release) -> None:
    """Build the images; by their ids, as a registry gives them digests of its own.

    The base is one that everybody can get: by the digest that its registry has for it.
    """
    from e2e import images
    from e2e.commands import CommandError

    base = images.base()
    inspected = run("docker", "image", "inspect", "--format", "{{json .RepoDigests}}", base)
    release.base = pinned(base, json.loads(inspected) or ())
    if not release.base:
        text = f"images on a base by digest: {base} has none here"
        remedy = f"docker pull {base}, or name one with {images.BASE_VARIABLE}"
        release.missing.append(f"{text}; {remedy}")
    labels = image_labels(release)
    for target in images.TARGETS:
        try:
            images.build(target, on=release.base or base, labels=labels)
        except CommandError as error:
            raise ReleaseError(str(error)) from error
        name = images.name(target)
        release.images[name] = run(
            "docker", "image", "inspect", "--format", "{{.Id}}", name
        ).strip()
    if release.base:
        plan = bake(release, {target: images.name(target) for target in images.TARGETS})
        (DIST / BAKE_FILE).write_text(json.dumps(plan, indent=2) + "\n", encoding="utf-8")


def pinned(base: str, digests: Sequence[str]) -> str:
    """An image with the digest that its registry has for it; empty where that is not known.

    `digests` are those of the image that is here, each with the name that it has in a registry.
    """
    name, at, _ = base.partition("@")
    if at:
        return base
    repository = name[: name.rfind(":")] if ":" in name.rpartition("/")[2] else name
    for each in digests:
        known, _, digest = each.partition("@")
        if known == repository:
            return f"{name}@{digest}"
    return ""


def image_labels(release: Release) -> dict[str, str]:
    """What an image says of itself (OCI's annotations), beside what the Dockerfile says."""
    name, _, digest = release.base.partition("@")
    created = datetime.fromtimestamp(int(release.epoch), UTC)
    labels = {
        f"{OCI}.version": release.version,
        f"{OCI}.revision": release.commit,
        f"{OCI}.created": f"{created:%Y-%m-%dT%H:%M:%SZ}",
    }
    return labels | ({f"{OCI}.base.name": name, f"{OCI}.base.digest": digest} if digest else {})


def bake(release: Release, names: Mapping[str, str]) -> dict[str, Any]:
    """A file of `docker buildx bake`: the images of a release by target, for all platforms."""
    target = {
        "context": ".",
        "dockerfile": "Dockerfile",
        "platforms": list(PLATFORMS),
        "labels": image_labels(release),
        "attest": list(ATTESTATIONS),
        # Of the times in an image, as BuildKit reads it.
        "args": {"BASE": release.base, "SOURCE_DATE_EPOCH": release.epoch},
    }
    return {
        "group": {"default": {"targets": list(names)}},
        "target": {
            each: {**target, "target": each, "tags": [name]} for each, name in names.items()
        },
    }


def finish(release: Release, directory: Path) -> None:
    """Name every file with size and digest, in release.json and as `sha256sum --check` reads it."""
    for path in sorted(directory.iterdir()):
        if path.name not in ("SHA256SUMS", "release.json", ".gitignore"):
            release.files[path.name] = {"size": path.stat().st_size, "sha256": digest(path)}
    sums = "".join(f"{entry['sha256']}  {name}\n" for name, entry in release.files.items())
    (directory / "SHA256SUMS").write_text(sums, encoding="utf-8")
    text = json.dumps(asdict(release), indent=2, sort_keys=True)
    (directory / "release.json").write_text(text + "\n", encoding="utf-8")


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    found = hashlib.sha256()
    with path.open("rb") as content:
        while chunk := content.read(CHUNK_BYTES):
            found.update(chunk)
    return found.hexdigest()


def main(arguments: Sequence[str]) -> int:
    """Make a release in dist/; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.release")
    parser.add_argument("--cibuildwheel", action="store_true", help="wheels for all platforms")
    parser.add_argument("--images", action="store_true", help="build the images, too")
    options = parser.parse_args(arguments)
    parts: list[tuple[str, Callable[[Release], None]]] = [
        (
            "source distribution and wheels",
            distributions_of_cibuildwheel if options.cibuildwheel else distributions,
        ),
        ("SBOM", bill_of_materials),
        ("changelog", changelog),
        ("chart and manifests", chart),
    ]
    if options.images:
        parts.append(("images", container_images))
    try:
        release = begin()
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        for title, make in parts:
            print(f"release: {title}", flush=True)
            make(release)
        finish(release, DIST)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for name, entry in release.files.items():
        print(f"  {entry['sha256'][:16]}  {entry['size']:>10,}  {name}")
    for name, image in release.images.items():
        print(f"  {image}  {name}")
    for text in release.missing:
        print(f"release: not made: {text}")
    if not release.clean:
        print("release: the checkout has changes that are not committed; this is for trying only")
    page = "docs/contributing/releasing.md"
    print(f"release: {release.version} is in dist/; {page} says how it is published")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
