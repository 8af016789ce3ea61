import io
from pathlib import Path

import pytest
from rich.console import Console

from omniduplex.entrypoints.cli.pull import pull
from omniduplex.models.local.asset_sources import AssetError
from omniduplex.models.local.assets import load_manifest


def test_pull_reports_what_went_wrong_with_each_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = load_manifest().asset("smart_turn")
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / shipped.files[0].name).write_bytes(b"not the weights")
    monkeypatch.setenv("OMNIDUPLEX_ASSETS_MIRROR", str(mirror))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(mirror))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    console = Console(file=io.StringIO(), force_terminal=False)

    with pytest.raises(AssetError, match="ended after 15 of 8679182 bytes"):
        pull(["smart_turn"], tmp_path / "assets", console)


def test_pull_prints_path_origin_and_licence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "smart-turn-v3.2-cpu.onnx"
    monkeypatch.setattr(
        "omniduplex.models.local.assets.ensure", lambda names, progress, assets_dir: [weights]
    )
    out = io.StringIO()

    assert pull(["smart_turn"], tmp_path, Console(file=out, width=40)) == [weights]
    assert f"smart_turn: {weights} (pipecat-ai/smart-turn-v3, BSD-2-Clause)" in out.getvalue()
