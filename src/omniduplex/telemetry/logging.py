"""Standard logging; what a session logs on the engine loop says whose it is, in which epoch."""

from __future__ import annotations

import contextvars
import datetime
import logging
from typing import Any, Protocol

import msgspec

from omniduplex.telemetry.log_queue import QueuedHandler, Write, write_to_stderr

# They log each request of a remote language model as INFO.
CHATTY = ("httpx2", "httpcore2")
TEXT_FORMAT = "%(asctime)s %(levelname)s %(name)s%(session_suffix)s: %(message)s"


class LogSubject(Protocol):
    """The session whose input is being handled; an empty id is none."""

    @property
    def session_id(self) -> str:
        """Its id."""

    @property
    def epoch(self) -> int:
        """Its epoch, as of the line."""


class LogContext(msgspec.Struct, frozen=True):
    """A subject that stays as it is."""

    session_id: str = ""
    epoch: int = 0


class LogSettings(msgspec.Struct, frozen=True):
    """How a process logs; a worker process is started with those of its parent."""

    level: int = logging.INFO
    json_lines: bool = False


NO_SESSION = LogContext()
_subject: contextvars.ContextVar[LogSubject] = contextvars.ContextVar(
    "omniduplex_log_subject", default=NO_SESSION
)


class session_context:  # noqa: N801 - used as a function; as a generator it costs four times more
    """What is logged inside the block belongs to this session; for one block after the other."""

    __slots__ = ("_subject", "_token")

    def __init__(self, subject: LogSubject) -> None:
        self._subject = subject

    def __enter__(self) -> None:
        self._token = _subject.set(self._subject)

    def __exit__(self, *raised: object) -> None:
        _subject.reset(self._token)


class SessionFilter(logging.Filter):
    """Gives every record `session_id`, `epoch` and a printable `session_suffix`."""

    def filter(self, record: logging.LogRecord) -> bool:
        about = _subject.get()
        record.session_id = about.session_id
        record.epoch = about.epoch
        record.session_suffix = f" [{about.session_id} e{about.epoch}]" if about.session_id else ""
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line; expects records that `SessionFilter` has seen."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if session_id := getattr(record, "session_id", ""):
            line["session_id"] = session_id
            line["epoch"] = getattr(record, "epoch", 0)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def setup_logging(settings: LogSettings, write: Write = write_to_stderr) -> None:
    """Have all that this process logs written to one place, by a thread that may have to wait."""
    handler = QueuedHandler(write)
    handler.addFilter(SessionFilter())
    handler.setFormatter(JsonFormatter() if settings.json_lines else logging.Formatter(TEXT_FORMAT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level)
    for name in CHATTY:
        logging.getLogger(name).setLevel(max(settings.level, logging.WARNING))


def current_settings() -> LogSettings:
    """The settings that this process logs with, as far as a worker can share them."""
    root = logging.getLogger()
    json_lines = any(isinstance(handler.formatter, JsonFormatter) for handler in root.handlers)
    return LogSettings(level=root.level, json_lines=json_lines)
