"""Options of a stage are read into what there is, and what is not there is named with what is."""

from typing import Any

import pytest

from omniduplex.config.errors import ConfigError
from omniduplex.config.options import read_options
from omniduplex.config.pipeline import StageConfig
from omniduplex.models.local.stages.listen_parts import EmbeddedLanguageModel, ListenOptions


def listening(**options: Any) -> StageConfig:
    return StageConfig(stage_id=0, name="listen", model_class="a:B", options=options)


def test_options_are_the_struct_of_the_stage() -> None:
    model = {"type": "embedded", "threads": 2}
    options = read_options(listening(language="de", language_model=model), ListenOptions)

    assert options == ListenOptions(language="de", language_model=EmbeddedLanguageModel(threads=2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"instrctions": "x"},
            r"'listen': instrctions: unknown key \(there are: .*instructions.*\)",
        ),
        (
            {"language_model": {"type": "remote", "url": "x"}},
            r"language_model\.url: unknown key \(there are: api_key_env, base_url, model, type\)",
        ),
        ({"language_model": {"type": "rented"}}, "Invalid value 'rented'"),
        ({"language": 3}, r"Expected `str`, got `int` - at `\$\.language`"),
    ],
)
def test_what_is_wrong_names_the_stage_and_what_there_is(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read_options(listening(**options), ListenOptions)
