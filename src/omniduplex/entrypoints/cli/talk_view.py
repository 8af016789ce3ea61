"""How a conversation looks: drawn anew all the time on a terminal, line by line anywhere else."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

ORIGIN = "last audible frame of the microphone → first audio received"

Speaker = Literal["you", "model"]
_STYLES: dict[Speaker, str] = {"you": "cyan", "model": "green"}


@dataclass
class Line:
    """One turn of one side, growing while it is said."""

    speaker: Speaker
    words: str = ""
    note: str = ""


@dataclass(frozen=True)
class Answer:
    """What became of one answer; `latency_ms` is None when it never made a sound."""

    status: str
    """That of the response; with what the user did to it or why it ended, where there is more."""
    transcript: str
    audio_ms: float
    heard_ms: int
    latency_ms: float | None
    file: Path | None

    @property
    def latency(self) -> str:
        """The latency as people read it."""
        return "no audio" if self.latency_ms is None else f"{self.latency_ms:.0f} ms"


class TalkView(AbstractContextManager["TalkView"]):
    """Shows a conversation while it happens; used as a context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console

    @abstractmethod
    def state(self, name: str) -> None:
        """The model is listening, thinking or speaking."""

    @abstractmethod
    def growing(self, line: Line) -> None:
        """A turn has new words."""

    @abstractmethod
    def complete(self, line: Line) -> None:
        """A turn is over."""

    @abstractmethod
    def summary(self, answers: Sequence[Answer]) -> None:
        """All answers, at the end."""

    def warn(self, message: str) -> None:
        """Something went wrong that does not end the conversation."""
        self.console.print(message, style="yellow", markup=False, soft_wrap=True)


class PlainView(TalkView):
    """Whole lines without control codes, for pipes and files."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing to put in order."""

    def state(self, name: str) -> None:
        """One line for each change."""
        self._line(f"[{name}]")

    def growing(self, line: Line) -> None:
        """Nothing: a line is printed when it is whole."""

    def complete(self, line: Line) -> None:
        """One line for each turn."""
        self._line(" ".join(part for part in (f"{line.speaker}:", line.words, line.note) if part))

    def summary(self, answers: Sequence[Answer]) -> None:
        """One line for each answer."""
        self._line(f"latency: {ORIGIN}")
        for number, answer in enumerate(answers, start=1):
            self._line(
                f"response {number}: {answer.status}, latency {answer.latency},"
                f" audio {answer.audio_ms / 1000:.2f} s, heard {answer.heard_ms / 1000:.2f} s,"
                f" {answer.file or 'not written'}"
            )

    def _line(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True, emoji=False)


class LiveView(TalkView):
    """Both transcripts and the state, redrawn in place."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._lines: list[Line] = []
        self._state = ""
        self._live = Live(console=console, refresh_per_second=12, get_renderable=self._render)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()

    def state(self, name: str) -> None:
        """Show it at the bottom."""
        self._state = name

    def growing(self, line: Line) -> None:
        """Add the line when it is new; the next frame shows its words."""
        if not any(shown is line for shown in self._lines):
            self._lines.append(line)

    def complete(self, line: Line) -> None:
        """Its last words stay on the screen, above what still changes."""
        self._lines = [shown for shown in self._lines if shown is not line]
        self.console.print(self._turn(line))

    def summary(self, answers: Sequence[Answer]) -> None:
        """A table."""
        table = Table(title="Answers", caption=f"latency: {ORIGIN}")
        for column in ("#", "status", "latency", "audio", "heard", "file"):
            table.add_column(
                column, justify="right" if column in ("latency", "audio", "heard") else "left"
            )
        for number, answer in enumerate(answers, start=1):
            table.add_row(
                str(number),
                answer.status,
                answer.latency,
                f"{answer.audio_ms / 1000:.2f} s",
                f"{answer.heard_ms / 1000:.2f} s",
                str(answer.file or "not written"),
            )
        self.console.print(table)

    def _render(self) -> Group:
        return Group(*map(self._turn, self._lines), Text(f"● {self._state}", style="bold"))

    def _turn(self, line: Line) -> Text:
        head = Text(f"{line.speaker:>5}  ", style=_STYLES[line.speaker])
        return head.append(line.words, style="default").append(f"  {line.note}", style="dim")


def view_for(console: Console) -> TalkView:
    """The view that suits where the output goes."""
    return LiveView(console) if console.is_terminal else PlainView(console)
