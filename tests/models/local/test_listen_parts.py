"""The language model that a deploy file asks for."""

import logging
from pathlib import Path

import msgspec
import pytest

from omniduplex.models.local.stages.listen_parts import (
    EmbeddedLanguageModel,
    ListenOptions,
    RemoteLanguageModel,
    load_language_model,
)


def test_a_deploy_file_chooses_the_language_model() -> None:
    options = msgspec.convert(
        {"language_model": {"type": "remote", "base_url": "http://localhost/v1", "model": "m"}},
        ListenOptions,
    )
    assert options.language_model == RemoteLanguageModel(base_url="http://localhost/v1", model="m")
    assert msgspec.convert({}, ListenOptions).language_model == EmbeddedLanguageModel()
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"language_model": {"type": "remote"}}, ListenOptions)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    options = ListenOptions(language_model=EmbeddedLanguageModel(path=str(path)))

    with pytest.raises(FileNotFoundError, match=f"no such file: {path}"):
        load_language_model(options, None)


def test_a_tilde_is_the_home_of_who_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    options = ListenOptions(language_model=EmbeddedLanguageModel(path="~/model.gguf"))

    with pytest.raises(FileNotFoundError, match=f"no such file: {tmp_path}/model.gguf"):
        load_language_model(options, None)


@pytest.mark.parametrize(("value", "lines"), [(None, 1), ("secret", 0)])
def test_a_key_that_is_named_and_not_set_is_told(
    value: str | None,
    lines: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    if value:
        monkeypatch.setenv("MY_KEY", value)
    remote = RemoteLanguageModel(base_url="http://127.0.0.1:9/v1", model="m", api_key_env="MY_KEY")

    with caplog.at_level(logging.WARNING):
        load_language_model(ListenOptions(language_model=remote), None).close()

    assert [record.getMessage() for record in caplog.records] == [
        "MY_KEY is not set: requests to http://127.0.0.1:9/v1 carry no key"
    ][:lines]
