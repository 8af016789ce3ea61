"""What travels between the engine and a stage worker: msgpack arrays with raw PCM bytes."""

from __future__ import annotations

import msgspec


class StageInput(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """One unit of work for a request of a stage.

    `pcm` is int16 little-endian mono at the rate the model declares. `data` is the msgpack of a
    struct that belongs to the model: its plugin writes it, its stage reads it, nothing between
    looks inside. `final` says that the request gets no more input.
    """

    request_id: str
    epoch: int = 0
    pcm: bytes = b""
    text: str = ""
    final: bool = False
    data: bytes = b""


class StageAbort(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Forget these requests at once: nothing more comes out for them, their ids are used up."""

    request_ids: tuple[str, ...]


class StageStop(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The worker ends after this."""


class StagePing(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Asks for a `StagePong` once the model has stepped over all that came before."""


class StageProbe(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """Asks for a `StageAlive` at once, whatever the model is doing."""


class StageReady(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The worker has loaded its model; `load_s` is how long that took, in seconds.

    `answering` are the kernel's ids of the threads that answer probes; `sleepless` is what the
    model says of itself (`StageModel.sleepless`).
    """

    load_s: float
    answering: tuple[int, ...] = ()
    sleepless: bool = False


class StageDrained(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The worker has taken this many more inputs from its queue and gives them to its model."""

    count: int


class StagePong(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """The worker's loop turns: the model has been given all that came before the ping."""


class StageAlive(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """The worker's process runs, and its threads get their turn."""


class StageOutput(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """One result of a request.

    `epoch` is that of the input it answers. `pcm` is int16 little-endian mono at
    `sample_rate_hz`. `metrics` are seconds or counts by name. A non-empty `error` ends the
    request, and so does `finished`.
    """

    request_id: str
    epoch: int = 0
    pcm: bytes = b""
    sample_rate_hz: int = 0
    text: str = ""
    finished: bool = False
    data: bytes = b""
    metrics: dict[str, float] = {}
    error: str = ""


class StageFatal(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """The worker cannot go on; it exits after this."""

    error: str


StageMessage = StageInput | StageAbort
ToInbox = StageInput | StageAbort | StagePing | StageStop
ToWorker = ToInbox | StageProbe
FromWorker = StageReady | StageDrained | StagePong | StageAlive | StageOutput | StageFatal
