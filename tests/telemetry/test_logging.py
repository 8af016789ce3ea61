import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from omniduplex.telemetry.logging import (
    LogContext,
    LogSettings,
    current_settings,
    session_context,
    setup_logging,
)

logger = logging.getLogger("omniduplex.test")


@pytest.fixture(autouse=True)
def _restore_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("omniduplex.telemetry.log_queue.FLUSH_TIMEOUT_S", 60.0)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


class TextLog(io.StringIO):
    """What is logged, whole whenever it is read."""

    def getvalue(self) -> str:
        logging.getLogger().handlers[0].flush()
        return super().getvalue()


def text_log(*, json_lines: bool = False, level: int = logging.INFO) -> io.StringIO:
    log = TextLog()

    def write(text: str) -> None:
        log.write(text)

    setup_logging(LogSettings(level=level, json_lines=json_lines), write)
    return log


def test_a_line_names_the_session_and_epoch_it_is_about() -> None:
    stream = text_log()

    logger.info("outside")
    with session_context(LogContext("sess_1", epoch=3)):
        logger.info("inside")
    logger.info("outside again")

    assert [line.split("INFO ", 1)[1] for line in stream.getvalue().splitlines()] == [
        "omniduplex.test: outside",
        "omniduplex.test [sess_1 e3]: inside",
        "omniduplex.test: outside again",
    ]


def test_tasks_do_not_see_the_session_of_each_other() -> None:
    stream = text_log()

    async def work(session_id: str, other: asyncio.Event, mine: asyncio.Event) -> None:
        with session_context(LogContext(session_id, epoch=0)):
            mine.set()
            await other.wait()
            logger.info("work of %s", session_id)

    async def both() -> None:
        a, b = asyncio.Event(), asyncio.Event()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(work("sess_a", a, b))
            group.create_task(work("sess_b", b, a))

    asyncio.run(both())

    lines = sorted(line.split("test ", 1)[1] for line in stream.getvalue().splitlines())
    assert lines == ["[sess_a e0]: work of sess_a", "[sess_b e0]: work of sess_b"]


def test_json_lines_can_be_parsed() -> None:
    stream = text_log(json_lines=True)

    logger.info("plain")
    with session_context(LogContext("sess_1", epoch=2)):
        try:
            raise ValueError("zwölf\n")
        except ValueError:
            logger.exception('says "%s"', "it")

    plain, failed = (json.loads(line) for line in stream.getvalue().splitlines())
    assert plain["message"] == "plain"
    assert "session_id" not in plain
    assert (failed["session_id"], failed["epoch"], failed["level"]) == ("sess_1", 2, "ERROR")
    assert failed["message"] == 'says "it"'
    assert failed["exception"].endswith("ValueError: zwölf\n")


@pytest.mark.parametrize("json_lines", [False, True])
def test_a_worker_can_be_given_the_settings_of_this_process(json_lines: bool) -> None:
    text_log(json_lines=json_lines, level=logging.WARNING)

    assert current_settings() == LogSettings(level=logging.WARNING, json_lines=json_lines)


def test_what_is_below_the_level_is_not_logged() -> None:
    stream = text_log(level=logging.WARNING)

    logger.info("too little")

    assert stream.getvalue() == ""


def test_requests_of_the_http_client_are_no_news() -> None:
    stream = text_log()

    logging.getLogger("httpx2").info("HTTP Request: POST ...")
    logging.getLogger("httpx2").warning("worth knowing")

    assert "HTTP Request" not in stream.getvalue()
    assert "worth knowing" in stream.getvalue()
