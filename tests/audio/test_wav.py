import io
import struct
import wave
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.audio.wav import (
    endless_wav_header,
    read_wav,
    read_wav_file,
    wav_bytes,
    write_wav,
)


def foreign_wav(path: Path, frames: bytes, *, width: int, channels: int = 1) -> Path:
    with wave.open(str(path), "wb") as writer:
        writer.setsampwidth(width)
        writer.setnchannels(channels)
        writer.setframerate(44100)
        writer.writeframes(frames)
    return path


def samples(pcm: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(pcm) // 2}h", pcm))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", b"\1\2\3\4", 24000)

    assert read_wav(tmp_path / "a.wav") == (b"\1\2\3\4", 24000)


def test_bytes_are_the_same_file(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", b"\1\2\3\4", 16000)

    assert (tmp_path / "a.wav").read_bytes() == wav_bytes(b"\1\2\3\4", 16000)


def test_a_file_in_memory_is_read_too() -> None:
    assert read_wav_file(io.BytesIO(wav_bytes(b"\1\2\3\4", 8000))) == (b"\1\2\3\4", 8000)


def test_a_wav_may_begin_before_its_end_is_known() -> None:
    streamed = endless_wav_header(22050) + b"\1\2" + b"\3\4"

    assert read_wav_file(io.BytesIO(streamed)) == (b"\1\2\3\4", 22050)
    assert len(endless_wav_header(22050)) == len(wav_bytes(b"", 22050))


def changed(offset: int, new: bytes) -> io.BytesIO:
    """A file of which some bytes are others."""
    whole = wav_bytes(bytes(64), 16000)
    return io.BytesIO(whole[:offset] + new + whole[offset + len(new) :])


def test_a_chunk_larger_than_the_file_around_it_is_refused() -> None:
    with pytest.raises(wave.Error, match="contradict"):
        read_wav_file(changed(16, (2000).to_bytes(4, "little")))


@pytest.mark.parametrize("bits", [33, 40, 64])
def test_samples_wider_than_any_that_we_convert_are_refused(bits: int) -> None:
    with pytest.raises(wave.Error, match="bits"):
        read_wav_file(changed(34, bits.to_bytes(2, "little")))


@given(st.binary(max_size=200).map(lambda data: data[: len(data) // 2 * 2]))
def test_the_header_tells_the_size(pcm: bytes) -> None:
    with wave.open(io.BytesIO(wav_bytes(pcm, 22050))) as reader:
        assert reader.getparams()[:4] == (1, 2, 22050, len(pcm) // 2)


@pytest.mark.parametrize(
    ("width", "frames"),
    [
        (1, bytes([0, 64, 128, 192])),
        (2, struct.pack("<4h", -32768, -16384, 0, 16384)),
        (3, b"\0\0\x80\0\0\xc0\0\0\0\0\0\x40"),
        (4, struct.pack("<4i", -(2**31), -(2**30), 0, 2**30)),
    ],
)
def test_every_width_has_the_same_scale(tmp_path: Path, width: int, frames: bytes) -> None:
    pcm, rate = read_wav(foreign_wav(tmp_path / "a.wav", frames, width=width))

    assert samples(pcm) == [-32768, -16384, 0, 16384]
    assert rate == 44100


def test_wide_samples_are_rounded_and_never_wrap(tmp_path: Path) -> None:
    frames = struct.pack("<4i", 2**31 - 1, 65536 * 5 + 40000, 65536 * 5 + 20000, -40000)
    pcm, _ = read_wav(foreign_wav(tmp_path / "a.wav", frames, width=4))

    assert samples(pcm) == [32767, 6, 5, -1]


def test_channels_are_averaged(tmp_path: Path) -> None:
    frames = struct.pack("<6h", 100, 300, -32768, -32768, 32767, -32767)
    pcm, _ = read_wav(foreign_wav(tmp_path / "a.wav", frames, width=2, channels=2))

    assert samples(pcm) == [200, -32768, 0]


def test_a_file_that_is_no_wav_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"not a wave file at all")

    with pytest.raises(wave.Error):
        read_wav(tmp_path / "a.wav")


@pytest.mark.parametrize(("width", "channels"), [(2, 1), (2, 2), (3, 1)])
def test_a_file_cut_inside_a_frame_loses_that_frame_only(
    tmp_path: Path, width: int, channels: int
) -> None:
    whole = foreign_wav(tmp_path / "a.wav", bytes(24), width=width, channels=channels)
    cut = tmp_path / "b.wav"
    cut.write_bytes(whole.read_bytes()[:-1])

    assert len(read_wav(cut)[0]) == len(read_wav(whole)[0]) - 2


def test_a_header_cut_short_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(wav_bytes(bytes(8), 16000)[:30])

    with pytest.raises(EOFError):
        read_wav(tmp_path / "a.wav")
