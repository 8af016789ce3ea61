"""Audio arithmetic, WAV files and data URLs, without arrays."""

from __future__ import annotations

import io
import wave
from pathlib import Path
from typing import NamedTuple, get_args

import pybase64
from msgspec import UNSET

from omniduplex.protocol.duplex import AudioDelta, AudioFormat, Encoding

PCM16_BYTES = 2
_ENCODINGS: dict[str, Encoding] = {name: name for name in get_args(Encoding)}


class Samples(NamedTuple):
    """Bytes of samples, and how they are coded."""

    data: bytes
    format: AudioFormat


def delta_format(delta: AudioDelta, expected: AudioFormat) -> AudioFormat:
    """The format of a delta: what it says itself, else what was asked for."""
    encoding = expected.encoding
    if delta.format is not UNSET:
        encoding = _ENCODINGS.get(delta.format, encoding)
    rate_hz = expected.sample_rate_hz if delta.sample_rate_hz is UNSET else delta.sample_rate_hz
    if encoding == expected.encoding and rate_hz == expected.sample_rate_hz:
        return expected
    return AudioFormat(encoding=encoding, sample_rate_hz=rate_hz)


def samples_of(piece: bytes, audio_format: AudioFormat) -> Samples:
    """What is played of a piece of audio: PCM16 out of its WAV, any other as it is.

    So is a file that is no WAV of mono PCM16; its format still says `wav` then.
    """
    if audio_format.encoding != "wav":
        return Samples(piece, audio_format)
    if not piece:
        return Samples(b"", AudioFormat(sample_rate_hz=audio_format.sample_rate_hz))
    try:
        with wave.open(io.BytesIO(piece), "rb") as reader:
            layout = (reader.getnchannels(), reader.getsampwidth())
            rate_hz, data = reader.getframerate(), reader.readframes(reader.getnframes())
    except (wave.Error, EOFError, RuntimeError):  # the last of chunks that lie about their size
        return Samples(piece, audio_format)
    if layout != (1, PCM16_BYTES):
        return Samples(piece, audio_format)
    return Samples(data, AudioFormat(sample_rate_hz=rate_hz))


def audio_data_url(data: bytes | Path, mime: str = "audio/wav") -> str:
    """A `data:` URL of audio bytes, or of a file's bytes."""
    return _data_url(data, mime)


def reference_audio_data_url(path: Path | str | None) -> str | None:
    """A `data:` URL of a voice sample's WAV, `~` expanded; None for no sample.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return None if path is None else audio_data_url(Path(path).expanduser())


def image_data_url(data: bytes | Path, mime: str = "image/jpeg") -> str:
    """A `data:` URL of image bytes, or of a file's bytes."""
    return _data_url(data, mime)


def strip_data_url(text: str) -> str:
    """The bare base64 text of a `data:` URL; any other text as it is."""
    return text.partition(",")[2] if text.startswith("data:") else text


def read_pcm16_wav(path: Path, sample_rate_hz: int = 16000) -> bytes:
    """The samples of a mono 16 bit WAV at `sample_rate_hz`.

    Raises:
        ValueError: the file is no such WAV; the message says what it is instead.
        OSError: the file cannot be read.
    """
    try:
        with wave.open(str(path), "rb") as reader:
            found = (reader.getframerate(), reader.getnchannels(), reader.getsampwidth())
            data = reader.readframes(reader.getnframes())
    except (wave.Error, EOFError) as error:
        reason = str(error) or "it ends within its header"
        raise ValueError(f"{path} is not a PCM WAV file: {reason}") from None
    if found != (sample_rate_hz, 1, PCM16_BYTES):
        rate_hz, channels, width = found
        raise ValueError(
            f"{path} has {rate_hz} Hz, {channels} channel(s), {8 * width} bit samples;"
            f" {sample_rate_hz} Hz, 1 channel, 16 bit is needed"
        )
    return data


def write_pcm16_wav(path: Path, pcm: bytes, sample_rate_hz: int) -> None:
    """Write mono 16 bit samples as a WAV."""
    with wave.open(str(path), "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(PCM16_BYTES)
        writer.setframerate(sample_rate_hz)
        writer.writeframes(pcm)


def _data_url(data: bytes | Path, mime: str) -> str:
    content = data.read_bytes() if isinstance(data, Path) else data
    return f"data:{mime};base64,{pybase64.b64encode_as_string(content)}"
