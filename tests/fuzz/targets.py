"""Everything that is fuzzed, by name: a function that takes any bytes, and where to begin.

What a decoder may raise its target catches; whatever else comes out of one is a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.fuzz import corpus, events, sounds, texts


class Target(NamedTuple):
    """A decoder of bytes from outside, and inputs from which a fuzzer finds its way in."""

    run: Callable[[bytes], None]
    seeds: Callable[[], Sequence[bytes]]


TARGETS = {
    "append_payload": Target(events.append_payload, corpus.payloads),
    "chat_body": Target(texts.chat_body, corpus.chat_bodies),
    "client_event": Target(events.client_event, corpus.client_events),
    "client_event_by_grammar": Target(events.client_event_by_grammar, corpus.dice),
    "deploy_file": Target(texts.deploy_file, corpus.deploy_files),
    "g711": Target(sounds.g711, corpus.payloads),
    "recording": Target(texts.recording, corpus.recordings),
    "resume": Target(events.resume, corpus.resumes),
    "server_event": Target(events.server_event, corpus.server_events),
    "stage_frames": Target(events.stage_frames, corpus.frames),
    "wav": Target(sounds.wav, corpus.wavs),
    "wire_audio": Target(sounds.wire_audio, corpus.audio),
}
