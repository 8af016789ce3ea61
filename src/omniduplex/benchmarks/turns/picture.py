"""A time line as an SVG: both voices, who had the floor, and what the server said."""

from __future__ import annotations

from html import escape

import numpy as np

from omniduplex.audio.pcm import int16_to_float32
from omniduplex.benchmarks.turns.recording import Recording
from omniduplex.benchmarks.turns.spans import FLOOR, Kind, Timeline, UserSpan

PX_PER_S = 70
LEFT = 56
LANE = 46
USER_Y, AGENT_Y, EVENTS_Y, BOTTOM = 52, 128, 190, 300
INK, QUIET, PAPER = "#1c2430", "#8a94a3", "#ffffff"
FLOOR_COLOUR, DISTURBANCE_COLOUR, NOISE_COLOUR, AGENT_COLOUR = (
    "#2f6fde",
    "#d9822b",
    "#9aa3af",
    "#2e9e6b",
)
# What is told of the server's events, and in which row, so that neighbours do not collide.
TOLD = {
    "input_audio_buffer.speech_started": ("speech", 0),
    "input_audio_buffer.speech_stopped": ("stopped", 0),
    "overlap.decision": ("overlap", 1),
    "response.created": ("response", 2),
    "response.done": ("done", 2),
    "output_audio_buffer.cleared": ("cleared", 3),
    "error": ("error", 3),
}


def draw(title: str, recording: Recording, timeline: Timeline) -> str:
    """The whole picture."""
    width = LEFT + round(timeline.length_s * PX_PER_S) + 20
    height = BOTTOM + 24
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">',
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        _text(8, 20, title, INK, 'font-size="14" font-weight="bold"'),
        _text(8, USER_Y + LANE / 2, "user", INK),
        _text(8, AGENT_Y + LANE / 2, "agent", INK),
        *_axis(timeline.length_s),
        *(_user_span(span) for span in timeline.user),
        *(
            _box(span.start_s, span.end_s, AGENT_Y, AGENT_COLOUR, "agent")
            for span in timeline.agent
        ),
        _wave(recording.user_pcm, recording.rate_hz, USER_Y),
        _wave(recording.agent_pcm(), recording.rate_hz, AGENT_Y),
        *_events(recording),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _x(at_s: float) -> float:
    return round(LEFT + at_s * PX_PER_S, 1)


def _text(x: float, y: float, text: str, colour: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}" {more}>{escape(text)}</text>'


def _axis(length_s: float) -> list[str]:
    parts = []
    for second in range(int(length_s) + 1):
        x = _x(second)
        parts.append(
            f'<line x1="{x}" y1="34" x2="{x}" y2="{BOTTOM}" stroke="{QUIET}"'
            ' stroke-width="0.5" stroke-dasharray="2 4"/>'
        )
        parts.append(_text(x, BOTTOM + 14, f"{second} s", QUIET))
    return parts


def _user_span(span: UserSpan) -> str:
    colour = FLOOR_COLOUR if span.kind in FLOOR else DISTURBANCE_COLOUR
    if span.kind in (Kind.NOISE, Kind.ECHO):
        colour = NOISE_COLOUR
    return _box(span.start_s, span.end_s, USER_Y, colour, f"{span.kind.value}: {span.clip}")


def _box(start_s: float, end_s: float, y: float, colour: str, name: str) -> str:
    x, width = _x(start_s), round((end_s - start_s) * PX_PER_S, 1)
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{LANE}" fill="{colour}"'
        f' fill-opacity="0.18" stroke="{colour}"><title>{escape(name)}'
        f" {start_s:.2f}-{end_s:.2f} s</title></rect>"
        + _text(x + 2, y - 3, name, colour, 'font-size="9"')
    )


def _wave(pcm: bytes, rate_hz: int, y: float) -> str:
    """The peaks, a pixel wide each."""
    samples = np.abs(int16_to_float32(pcm))
    step = rate_hz // PX_PER_S
    peaks = np.pad(samples, (0, -len(samples) % step)).reshape(-1, step).max(axis=1)
    middle = y + LANE / 2
    lines = " ".join(
        f"M{_x(index * step / rate_hz)} {middle - height:.1f}v{2 * height:.1f}"
        for index, peak in enumerate(peaks.tolist())
        if (height := peak * LANE / 2) >= 0.2
    )
    return f'<path d="{lines}" stroke="{INK}" stroke-width="0.8"/>'


def _events(recording: Recording) -> list[str]:
    parts = []
    for event in recording.events:
        if event.type not in TOLD:
            continue
        name, row = TOLD[event.type]
        x, y = _x(event.at_s), EVENTS_Y + 12 + row * 24
        verdict = event.note.partition(":")[0]
        parts.append(
            f"<g><title>{escape(f'{event.at_s:.3f} s {event.type} {event.note}')}</title>"
            f'<line x1="{x}" y1="{y - 10}" x2="{x}" y2="{y + 4}" stroke="{INK}"/>'
        )
        parts.append(_text(x + 2, y, f"{name} {verdict}".strip(), INK, 'font-size="9"') + "</g>")
    return parts
