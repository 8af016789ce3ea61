"""Objects named in configuration by dotted path."""

from __future__ import annotations

import importlib
from typing import Any

from omniduplex.config.errors import ConfigError


def load_object(path: str) -> Any:
    """Import what `package.module:Name` names; raises `ConfigError` if it is not there.

    An exception that the module itself raises while it is imported is let through: it is a bug of
    that module or a missing dependency of it, not a wrong path.
    """
    module_name, _, name = path.partition(":")
    if not module_name or not name.isidentifier():
        raise ConfigError(f"{path!r} is not of the form package.module:Name")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        where = "; is it installed, or its folder on PYTHONPATH?"
        raise ConfigError(f"{path!r}: there is no module {error.name!r}{where}") from error
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise ConfigError(f"{path!r}: module {module_name!r} has no {name!r}") from error
