"""Where a fuzzer begins: inputs that decoders take, and the words of which they are made."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from importlib import resources
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
from tests.protocol.duplex.test_codec_fuzz import FIELDS, HOSTILE, REQUIRED, any_message

from omniduplex.audio.wav import endless_wav_header, wav_bytes
from omniduplex.protocol.duplex.codec import TYPE_ALIASES
from omniduplex.stages.messages import StageOutput
from omniduplex.stages.transport import encode_frame

TESTS = Path(__file__).parents[1]
# A word is at most so long in libFuzzer.
MAX_WORD_CHARS = 60


def words() -> list[str]:
    """Names, values and hostile texts of the wire."""
    names = [*FIELDS, *REQUIRED, *TYPE_ALIASES]
    quoted = [json.dumps(name) for name in names]
    return [*quoted, *(text for text in HOSTILE if 0 < len(text) <= MAX_WORD_CHARS)]


def client_events() -> list[bytes]:
    """Every event of the golden files, and some that are wrong."""
    golden = sorted((TESTS / "protocol/golden/client").glob("*.json"))
    chance = random.Random("corpus")
    made = [any_message(chance).encode("utf-8", "surrogatepass") for _ in range(200)]
    return [*(path.read_bytes() for path in golden), *(one for one in made if len(one) < 2000)]


def server_events() -> list[bytes]:
    """Every server event of the golden files."""
    return [path.read_bytes() for path in sorted((TESTS / "protocol/golden/server").glob("*.json"))]


def dice() -> list[bytes]:
    """Luck of some length."""
    chance = random.Random("dice")
    return [chance.randbytes(length) for length in (8, 32, 128, 512)]


def payloads() -> list[bytes]:
    """Base64 with and without its end."""
    return [b"", b"AAA=", b"AAAA", b"AA==", b"AA", b"//+/", b"__-_", b"AAAA\n", b"AA=A"]


def resumes() -> list[bytes]:
    """Tokens, numbers, and a whole event."""
    path = TESTS / "protocol/golden/client/session.resume.json"
    numbers = [0, 1, 4, 5, -1, 2**53, 2**63, 2**64, 1.5, 4.0, 1e300]
    return [path.read_bytes(), b"A" * 43, *(json.dumps(number).encode() for number in numbers)]


def frames() -> list[bytes]:
    """One frame, two frames, half a frame, and one that is announced too large."""
    output = StageOutput(request_id="r", pcm=bytes(8), sample_rate_hz=16_000, metrics={"s": 0.5})
    frame = bytes(encode_frame(output))
    return [frame, frame * 2, frame[:-3], b"\xff\xff\xff\xff", frame + b"\x7f\0\0\0"]


def audio() -> list[bytes]:
    """Every encoding at some rates, with samples that are loud, odd or not finite."""
    chance = random.Random("audio")
    floats = np.array([0.0, 1.0, -2.0, np.nan, np.inf, 1e-40], dtype="<f4").tobytes()
    bodies = (b"", b"\0", chance.randbytes(33), floats, floats[:12])
    return [bytes((kind, rate, 5)) + body for kind, rate, body in product(range(4), (0, 9), bodies)]


def wavs() -> list[bytes]:
    """Files of every width and of two channels, cut short, and without an end."""
    plain = wav_bytes(bytes(range(64)), 16_000)
    made = [plain, plain[:-5], plain[:30], endless_wav_header(24_000) + bytes(9), plain + b"LIST"]
    for channels, width in product((1, 2), (1, 2, 3, 4)):
        layout = bytearray(plain)
        layout[22:24] = channels.to_bytes(2, "little")
        layout[32:34] = (channels * width).to_bytes(2, "little")
        layout[34:36] = (8 * width).to_bytes(2, "little")
        made.append(bytes(layout))
    return made


def chat_bodies() -> list[bytes]:
    """Written, spoken and with tools."""
    sound = {"data": "AAAA", "format": "pcm16"}
    heard = {"type": "input_audio", "input_audio": sound}
    said = {"role": "assistant", "audio": {"id": "audio_1"}}
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    bodies: Sequence[dict[str, object]] = (
        {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 7, "temperature": 1},
        {"messages": [{"role": "user", "content": [heard]}, said], "modalities": ["text"]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], "n": 1},
        {"messages": [{"role": "assistant", "tool_calls": [call]}], "tools": [tool]},
        {
            "messages": [{"role": "tool", "tool_call_id": "c", "content": "{}"}],
            "modalities": ["text", "audio"],
            "audio": {"voice": {"id": "v"}, "format": "wav"},
            "tool_choice": {"type": "function", "function": {"name": "look"}},
        },
    )
    return [msgspec.json.encode({"model": "m", **body}) for body in bodies]


def deploy_files() -> list[bytes]:
    """The built-in deployments, and YAML that is more than data."""
    folder = resources.files("omniduplex.config") / "deploy"
    tricks = (b"a: &a [*a]", b"!!python/name:os.system", b"{? {} : 1}", b"- 2026-01-01", b"1: 2")
    return [*(entry.read_bytes() for entry in folder.iterdir()), *tricks]


def recordings() -> list[bytes]:
    """The conversations that are held again elsewhere, shortened."""
    paths = sorted((TESTS / "conversations").glob("*.jsonl"))
    return [b"\n".join(path.read_bytes().splitlines()[:6]) for path in paths]
