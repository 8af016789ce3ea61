from pathlib import Path

import pytest

from omniduplex.config.errors import ConfigError
from omniduplex.config.objects import load_object


def test_loads_what_the_path_names() -> None:
    assert load_object("omniduplex.config.errors:ConfigError") is ConfigError


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("omniduplex.config.errors", "is not of the form"),
        (":ConfigError", "is not of the form"),
        ("omniduplex.config.errors:", "is not of the form"),
        ("omniduplex.config.nowhere:Thing", "there is no module 'omniduplex.config.nowhere'"),
        (
            "no_such_package.module:Thing",
            "no module 'no_such_package'; is it installed, or its folder on PYTHONPATH",
        ),
        ("omniduplex.config.errors:Thing", "has no 'Thing'"),
    ],
)
def test_a_wrong_path_is_a_config_error(path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_object(path)


def test_a_dependency_that_the_module_lacks_is_not_taken_for_a_wrong_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needs_more.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        load_object("needs_more:Thing")
