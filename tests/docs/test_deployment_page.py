"""Every deploy file that the page shows is one that loads."""

import re
from pathlib import Path

import msgspec
import pytest

from omniduplex.config.loader import load_pipeline
from omniduplex.config.objects import load_object

PAGE = Path(__file__).parents[2] / "docs" / "deployment.md"
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_loads_with_options_that_its_stages_take(example: str, tmp_path: Path) -> None:
    file = tmp_path / "deploy.yaml"
    file.write_text(example)
    pipeline = load_pipeline("local", file)
    for stage in pipeline.stages:
        msgspec.convert(stage.options, load_object(stage.model_class).Options)


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 4
