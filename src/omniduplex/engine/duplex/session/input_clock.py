"""Where in its client's audio is what a model heard."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

MAX_SPANS = 256
"""Times are told within seconds of their sound; a pause that is filled with silence makes two."""
SAME_MS = 0.01
"""Sums of floats that differ by less are one moment: less than a sample."""


class _Span(NamedTuple):
    """From `model_ms` on, what the model hears is its client's audio from `client_ms` on.

    If it `stands`, it is silence that no client sent, all of it at that moment.
    """

    model_ms: float
    client_ms: float
    stands: bool = False


class InputClock:
    """Two clocks of one input, in ms: the model's goes on with whatever it is given.

    That is more than its client sent wherever silence of the server's own comes between, or sound
    that was kept comes once more, behind the silence that stood for it.
    """

    def __init__(self) -> None:
        self.heard_ms = 0.0
        """The client's audio so far."""
        self._model_ms = 0.0
        self._client_ms = 0.0
        """Where the model is in the client's audio."""
        self._spans = deque([_Span(0.0, 0.0)], maxlen=MAX_SPANS)

    def heard(self, length_ms: float) -> None:
        """The client has sent so much more."""
        self.heard_ms += length_ms

    def given(self, length_ms: float) -> None:
        """The model gets so much, and the end of it is the newest that its client sent."""
        if not length_ms:
            return
        began_ms = self.heard_ms - length_ms
        if self._spans[-1].stands or abs(began_ms - self._client_ms) > SAME_MS:
            self._spans.append(_Span(self._model_ms, began_ms))
        self._model_ms += length_ms
        self._client_ms = self.heard_ms

    def fed(self, length_ms: float) -> None:
        """The model gets so much silence that its client did not send."""
        if not self._spans[-1].stands:
            self._spans.append(_Span(self._model_ms, self._client_ms, stands=True))
        self._model_ms += length_ms

    def began_at(self, model_ms: float) -> int:
        """Where in the client's audio began what began then on the model's clock."""
        return self._at(model_ms, model_ms + SAME_MS)

    def ended_at(self, model_ms: float) -> int:
        """Where in the client's audio ended what ended then on the model's clock."""
        return self._at(model_ms, model_ms - SAME_MS)

    def _at(self, model_ms: float, inside_ms: float) -> int:
        """The client's time of a moment that belongs to the span which `inside_ms` is in."""
        if inside_ms > self._model_ms:
            return max(0, round(self._client_ms + model_ms - self._model_ms))
        spans = reversed(self._spans)
        span = next((span for span in spans if span.model_ms <= inside_ms), self._spans[0])
        went_ms = 0.0 if span.stands else model_ms - span.model_ms
        return max(0, round(span.client_ms + went_ms))
