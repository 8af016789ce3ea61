"""Model weights as data with a pinned hash: the manifest, where they live, and how they get there.

The assets directory is `$OMNIDUPLEX_ASSETS`, else `$XDG_CACHE_HOME/omniduplex/assets`, else
`~/.cache/omniduplex/assets`. A stamp (size, mtime, sha256) per asset spares hashing it again.
"""

import contextlib
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.client import HTTPException
from importlib.resources import files
from pathlib import Path
from zipfile import BadZipFile

import msgspec

from omniduplex.models.local.asset_sources import (
    CHUNK,
    AssetError,
    Fetcher,
    Source,
    SourceError,
    describe,
)


class AssetMissing(AssetError, FileNotFoundError):  # noqa: N818 - reads as the state it reports
    """The asset is not in the assets directory, or its bytes are not the pinned ones."""


class AssetFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file, named relative to the assets directory.

    A null `sha256` is recorded at the first download and pinned on this machine from then on.
    """

    name: str
    size: int | None = None
    sha256: str | None = None


class Asset(msgspec.Struct, frozen=True, kw_only=True):
    """One model: what it is, where it comes from, and the files it consists of."""

    name: str
    what: str
    upstream: str
    licence: str
    path: str
    files: tuple[AssetFile, ...]
    sources: tuple[Source, ...]
    default: bool = False


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Every asset that can be pulled."""

    assets: tuple[Asset, ...]

    def asset(self, name: str) -> Asset:
        """Return the asset of that name.

        Raises:
            AssetError: the manifest does not list it.
        """
        for asset in self.assets:
            if asset.name == name:
                return asset
        known = ", ".join(asset.name for asset in self.assets)
        raise AssetError(f"unknown asset {name!r}; known: {known}")

    def default_names(self) -> tuple[str, ...]:
        """Name the assets that the embedded model needs."""
        return tuple(asset.name for asset in self.assets if asset.default)


class Stamp(msgspec.Struct, frozen=True):
    """What a verified file looked like, so that an unchanged one need not be hashed again."""

    size: int
    mtime_ns: int
    sha256: str


class Progress(msgspec.Struct, frozen=True):
    """`done` bytes of `total` (None: unknown) of an asset's file are here."""

    asset: str
    file: str
    done: int
    total: int | None


OnProgress = Callable[[Progress], None]


def load_manifest() -> Manifest:
    """Read the manifest that ships with this package."""
    raw = (files("omniduplex.models.local") / "manifest.json").read_bytes()
    return msgspec.json.decode(raw, type=Manifest)


def default_assets_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Return the assets directory that the environment asks for."""
    if chosen := env.get("OMNIDUPLEX_ASSETS"):
        return Path(chosen).expanduser()
    cache = env.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "omniduplex" / "assets"


class AssetStore:
    """One assets directory and the manifest that fills it."""

    def __init__(self, manifest: Manifest, root: Path, endpoint: str | None = None) -> None:
        self._manifest = manifest
        self._root = root
        self._endpoint = endpoint

    def path(self, name: str) -> Path:
        """Return the verified file or folder of an asset.

        Raises:
            AssetMissing: it is not here, or not with the pinned bytes.
        """
        asset = self._manifest.asset(name)
        if self._missing(asset):
            raise AssetMissing(
                f"asset {name!r} is not in {self._root}; run: omniduplex pull {name}"
            )
        return self._root / asset.path

    def ensure(self, names: Sequence[str], progress: OnProgress | None = None) -> list[Path]:
        """Bring assets here and return their paths; without network when they are here already.

        Raises:
            AssetError: an asset is unknown or no source gave the pinned bytes.
        """
        assets = [self._manifest.asset(name) for name in names]
        if any(self._missing(asset) for asset in assets):
            with self._locked(), tempfile.TemporaryDirectory(dir=self._root) as wheels:
                fetcher = Fetcher(Path(wheels), self._endpoint)
                for asset in assets:
                    self._complete(asset, fetcher, progress or _silent)
        return [self._root / asset.path for asset in assets]

    def _complete(self, asset: Asset, fetcher: Fetcher, progress: OnProgress) -> None:
        stamps = self._stamps(asset)
        for file in self._missing(asset):
            stamps[file.name] = self._fetch(asset, file, fetcher, progress)
            self._write_stamps(asset, stamps)

    def _fetch(
        self, asset: Asset, file: AssetFile, fetcher: Fetcher, progress: OnProgress
    ) -> Stamp:
        pinned = self._pinned(asset, file)
        reasons = []
        for source in asset.sources:
            try:
                return self._fetch_from(source, asset, file, pinned, fetcher, progress)
            except (SourceError, OSError, HTTPException, BadZipFile) as error:
                reasons.append(f"  {describe(source)}: {error}")
        listed = "\n".join(reasons)
        raise AssetError(f"no source gave {file.name} of asset {asset.name!r}:\n{listed}")

    def _fetch_from(
        self,
        source: Source,
        asset: Asset,
        file: AssetFile,
        pinned: str | None,
        fetcher: Fetcher,
        progress: OnProgress,
    ) -> Stamp:
        target = self._root / file.name
        part = target.with_name(target.name + ".part")
        part.parent.mkdir(parents=True, exist_ok=True)
        have = part.stat().st_size if part.exists() else 0
        progress(Progress(asset.name, file.name, have, file.size))
        stream = fetcher.open(source, file.name, have)
        with part.open("ab") as out:
            out.truncate(stream.offset)
            done = stream.offset
            for chunk in stream.chunks:
                out.write(chunk)
                done += len(chunk)
                progress(Progress(asset.name, file.name, done, file.size))
        if file.size is not None and done < file.size:
            raise SourceError(f"ended after {done} of {file.size} bytes")
        digest = sha256_of(part)
        if pinned is not None and digest != pinned:
            part.unlink()
            raise SourceError(f"sha256 is {digest}, not the pinned {pinned}")
        part.replace(target)
        return _stamp(target, digest)

    def _missing(self, asset: Asset) -> list[AssetFile]:
        """List the files that are absent or altered; a sound one without stamp gets its stamp."""
        stamps = self._stamps(asset)
        missing = []
        for file in asset.files:
            path = self._root / file.name
            stamp = stamps.get(file.name)
            if not path.is_file() or (file.size not in (None, path.stat().st_size)):
                missing.append(file)
            elif stamp is None or stamp != _stamp(path, file.sha256 or stamp.sha256):
                digest = sha256_of(path)
                if digest == (self._pinned(asset, file) or digest):
                    self._write_stamps(asset, stamps | {file.name: _stamp(path, digest)})
                    stamps = self._stamps(asset)
                else:
                    missing.append(file)
        return missing

    def _pinned(self, asset: Asset, file: AssetFile) -> str | None:
        recorded = self._stamps(asset).get(file.name)
        return file.sha256 or (recorded.sha256 if recorded else None)

    def _stamp_file(self, asset: Asset) -> Path:
        return self._root / ".stamps" / f"{asset.name}.json"

    def _stamps(self, asset: Asset) -> dict[str, Stamp]:
        path = self._stamp_file(asset)
        if not path.is_file():
            return {}
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Stamp])

    def _write_stamps(self, asset: Asset, stamps: dict[str, Stamp]) -> None:
        path = self._stamp_file(asset)
        # A directory shared read-only stays usable: its files are then hashed at each start.
        with contextlib.suppress(PermissionError):
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_name(f"{path.name}.{os.getpid()}.part")
            fresh.write_bytes(msgspec.json.encode(stamps))
            fresh.replace(path)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time fill the directory; the lock dies with the process."""
        self._root.mkdir(parents=True, exist_ok=True)
        with (self._root / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def asset_path(name: str, assets_dir: Path | None = None) -> Path:
    """Return the verified file or folder of an asset of the shipped manifest.

    Raises:
        AssetMissing: it is not here; the message names the command that brings it.
    """
    return AssetStore(load_manifest(), assets_dir or default_assets_dir()).path(name)


def ensure(
    names: Sequence[str], progress: OnProgress | None = None, assets_dir: Path | None = None
) -> list[Path]:
    """Bring assets of the shipped manifest here; no names means the default set.

    Raises:
        AssetError: an asset is unknown or no source gave the pinned bytes.
    """
    manifest = load_manifest()
    store = AssetStore(manifest, assets_dir or default_assets_dir())
    return store.ensure(names or manifest.default_names(), progress)


def sha256_of(path: Path) -> str:
    """Return the hex digest of a file, read in chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _stamp(path: Path, sha256: str) -> Stamp:
    stat = path.stat()
    return Stamp(stat.st_size, stat.st_mtime_ns, sha256)


def _silent(_: Progress) -> None:
    return None
