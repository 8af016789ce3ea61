"""WAV files with integer PCM, by the standard library."""

import io
import struct
import wave
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from omniduplex.audio.pcm import INT16, SAMPLE_BYTES

# What streaming writers put where a size is not known yet.
_UNKNOWN_SIZE = 0xFFFFFFFF
MAX_SAMPLE_BYTES = 4
_INT32 = np.dtype(np.int32).newbyteorder("<")


def read_wav(path: str | Path) -> tuple[bytes, int]:
    """Mono PCM and its rate in Hz, from 8, 16, 24 or 32 bit samples; channels are averaged.

    Raises OSError when the file cannot be read, wave.Error when it is not a WAV of integer PCM
    and EOFError when its header is cut short.
    """
    with open(path, "rb") as file:
        return read_wav_file(file)


def read_wav_file(file: IO[bytes]) -> tuple[bytes, int]:
    """What `read_wav` gives, from a file that is open or in memory."""
    try:
        with wave.open(file, "rb") as reader:
            width, channels = reader.getsampwidth(), reader.getnchannels()
            rate, data = reader.getframerate(), reader.readframes(reader.getnframes())
    except EOFError:  # it says nothing of its own
        raise EOFError("it ends within its header") from None
    except RuntimeError as error:  # how `wave` meets a chunk that lies about its size
        raise wave.Error("the sizes of its chunks contradict each other") from error
    if width > MAX_SAMPLE_BYTES:
        raise wave.Error(f"samples of {8 * width} bits")
    # A file cut short may end inside a frame.
    data = data[: len(data) - len(data) % (width * channels)]
    if width == SAMPLE_BYTES and channels == 1:
        return data, rate
    frames = _in_int16_units(data, width).reshape(-1, channels)
    mono = np.rint(frames.mean(axis=1)).clip(-32768.0, 32767.0)
    return mono.astype(INT16).tobytes(), rate


def _in_int16_units(data: bytes, width: int) -> NDArray[np.float64]:
    """Samples of `width` bytes, scaled so that full scale is that of int16."""
    if width == 1:
        return (np.frombuffer(data, dtype=np.uint8).astype(np.float64) - 128.0) * 256.0
    # Left-justified in 32 bits, every signed width has the same scale.
    padded = np.zeros((len(data) // width, 4), dtype=np.uint8)
    padded[:, 4 - width :] = np.frombuffer(data, dtype=np.uint8).reshape(-1, width)
    return padded.view(_INT32)[:, 0].astype(np.float64) / 65536.0


def write_wav(path: str | Path, pcm: bytes, rate: int) -> None:
    """Write mono PCM at `rate` Hz."""
    with open(path, "wb") as file:
        _write(file, pcm, rate)


def wav_bytes(pcm: bytes, rate: int) -> bytes:
    """A whole WAV file of mono PCM at `rate` Hz."""
    buffer = io.BytesIO()
    _write(buffer, pcm, rate)
    return buffer.getvalue()


def endless_wav_header(rate: int) -> bytes:
    """The beginning of a WAV whose mono PCM follows as it comes: its sizes say "to the end"."""
    riff = struct.pack("<4sL4s", b"RIFF", _UNKNOWN_SIZE, b"WAVE")
    layout = struct.pack(
        "<4sLHHLLHH",
        b"fmt ",
        16,  # bytes of the format that follows
        wave.WAVE_FORMAT_PCM,
        1,
        rate,
        rate * SAMPLE_BYTES,
        SAMPLE_BYTES,
        8 * SAMPLE_BYTES,
    )
    return riff + layout + struct.pack("<4sL", b"data", _UNKNOWN_SIZE)


def _write(file: IO[bytes], pcm: bytes, rate: int) -> None:
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(SAMPLE_BYTES)
        writer.setframerate(rate)
        writer.writeframes(pcm)
