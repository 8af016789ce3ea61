"""Every deploy file that the page shows is one that loads."""

import re
from pathlib import Path

import msgspec
import pytest

from omniduplex.config.loader import load_pipeline
from omniduplex.config.objects import load_object
from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.models.local.stages.listen_parts import (
    EmbeddedLanguageModel,
    ListenOptions,
    RemoteLanguageModel,
)
from omniduplex.models.local.stages.speak import SpeakOptions

PAGE = Path(__file__).parents[2] / "docs" / "deployment.md"
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_loads_with_options_that_its_stages_take(example: str, tmp_path: Path) -> None:
    file = tmp_path / "deploy.yaml"
    file.write_text(example)
    pipeline = load_pipeline("local", file)
    for stage in pipeline.stages:
        msgspec.convert(stage.options, load_object(stage.model_class).Options)


def test_the_tables_have_every_option_of_the_local_pipeline() -> None:
    text = PAGE.read_text()
    structs = (ListenOptions, SpeakOptions, EmbeddedLanguageModel, RemoteLanguageModel)
    wanted = {name for struct in structs for name in struct.__struct_fields__}
    section = text.split("## Options of the stages")[1].split("## ")[0]
    told = re.findall(r"^\|[^|]*\| `(\w+)` \|", section, re.MULTILINE)

    assert set(told) == wanted


def test_the_page_has_every_limit_of_a_session() -> None:
    told = PAGE.read_text()

    assert [name for name in DuplexSessionRuntimeConfig.__struct_fields__ if name not in told] == []


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 4
