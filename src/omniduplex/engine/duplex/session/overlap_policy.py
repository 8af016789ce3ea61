"""What speech during an answer means: an interruption, an acknowledgement, or neither.

Pure functions over a small frozen view: rows 12 to 18 of the wire contract's table (section 8.2),
whoever tells of the speech, an ear or the appends of a client; `adaptive` is the policy that has
thresholds.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from omniduplex.protocol.duplex import OverlapPolicy

Action = Literal["listen", "barge_in", "drop"]
# What would interrupt, had the answer not to be said to its end.
UNINTERRUPTIBLE = "response_uninterruptible"

# Wire contract, section 8.2, plus what recognisers write for sounds of assent.
SHORT_ACKS = frozenset(
    [
        "嗯",
        "嗯嗯",
        "对",
        "对的",
        "好",
        "好的",
        "继续",
        "继续说",
        "可以",
        "是的",
        "yes",
        "yeah",
        "yep",
        "yup",
        "ok",
        "okay",
        "continue",
        "right",
        "sure",
        "mhm",
        "hmm",
        "mm",
        "uh-huh",
        "uhhuh",
        "mm-hm",
        "mmhm",
        "mm-hmm",
        "mmhmm",
        "aha",
        "i-see",
        "cool",
        "great",
        "nice",
        "wow",
        "really",
        "exactly",
        "true",
        "alright",
    ]
)
SHORT_ACK_PHRASES = frozenset(
    (
        "go on",
        "keep going",
        "please continue",
        "i see",
        "of course",
        "all right",
        "got it",
        "uh huh",
    )
)
# Sounds that are no words to anybody: coughs, laughter, hesitation.
TICS = frozenset(["um", "uh", "er", "erm", "ah", "oh", "ugh", "ha", "haha", "hm", "huh", "eh"])
# What nobody says alone: recognisers write it for a hum.
FRAGMENTS = frozenset(
    ["a", "an", "the", "and", "or", "but", "of", "to", "in", "for", "with", "i", "m", "n", "h"]
)
# Words that mean an interruption however short.
COMMANDS = frozenset(
    ["stop", "wait", "hold", "pause", "enough", "quiet", "cancel", "shut", "excuse", "halt"]
)
# A sound that is so likely to take the floor is not waited for to become words.
SURE_OF_FLOOR = 0.8
# So likely to be a tic, a word that a recogniser hears in it is none.
SURE_OF_TIC = 0.7
MANY_WORDS = 3
MANY_WORDS_MS = 500.0
"""So many words in so much sound are speech; a recogniser hears a few in any hum."""

QUIET_DB = 9.0
"""Speech this much below the user's usual level is not meant for us (dB)."""
DULL_QUIET_DB = 6.0
"""So much is enough if it sounds dull as well."""
# Before the user's level is known: who is that far from full scale and sounds that dull (power
# from 1 to 4 kHz over that below) speaks from the next room. Voices near a microphone are
# brighter, or louder, or both.
FAR_DBFS = -30.0
DULL_DB = -18.0


class OverlapView(msgspec.Struct, frozen=True, kw_only=True):
    """An overlap as far as it is known; times in ms of speech, levels in dBFS.

    `usual_level_dbfs` is the level at which this user speaks to us; None before the first turn.
    `brightness_db`, `floor` and `tic` are as in `UserSpeechProgress`.
    `onset` says that an utterance begins here, or that it runs already; None where nobody listens.
    `ended` says that the utterance is over, so that its words are final.
    """

    policy: OverlapPolicy
    supports_barge_in: bool
    interruptible: bool = True
    short_ack_ms: float
    barge_in_ms: float
    speech_ms: float
    transcript: str | None = None
    level_dbfs: float | None = None
    brightness_db: float | None = None
    floor: float | None = None
    tic: float | None = None
    usual_level_dbfs: float | None = None
    onset: bool | None = True
    ended: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """What to do, and the contract's word for why."""

    action: Action
    reason: str

    @property
    def is_turn(self) -> bool:
        """Whether it takes the floor, at once or after an answer that is said to its end."""
        return self.action == "barge_in" or self.reason == UNINTERRUPTIBLE


ON_SPEECH = {
    True: Verdict("barge_in", "server_vad_speech_started"),
    False: Verdict("listen", "server_vad_utterance_active"),
    None: Verdict("barge_in", "policy_barge_in_on_speech"),
}
UNSUPPORTED = Verdict("listen", "barge_in_unsupported")


def judge(view: OverlapView) -> Verdict:
    """Say what an overlap is, as of now; a `listen` may become a `barge_in` as it goes on."""
    verdict = _judge_alone(view)
    if verdict.action == "barge_in" and not view.interruptible:
        return Verdict("listen", UNINTERRUPTIBLE)
    return verdict


def _judge_alone(view: OverlapView) -> Verdict:
    """As `judge`, whatever it is spoken over."""
    if view.policy == "listen_only":
        return Verdict("listen", "policy_listen_only")
    if view.policy == "adaptive":
        verdict = _adaptive(view)
        strikes = verdict.action == "barge_in"
    else:  # at any speech at all
        verdict = ON_SPEECH[view.onset]
        strikes = True
    return UNSUPPORTED if strikes and not view.supports_barge_in else verdict


def _adaptive(view: OverlapView) -> Verdict:
    if _is_far(view):
        return Verdict("drop" if view.ended else "listen", "non_directed_speech")
    if view.transcript is not None:
        return _by_words(view, words(view.transcript))
    if _claims_floor(view):
        return Verdict("barge_in", "floor_claimed")
    if view.speech_ms <= view.short_ack_ms:
        return Verdict("listen", "short_ack")
    if view.speech_ms >= view.barge_in_ms:
        return Verdict("barge_in", "long_overlap_speech")
    return Verdict("listen", "accumulating_overlap_speech")


def _by_words(view: OverlapView, spoken: list[str]) -> Verdict:
    if is_short_ack(spoken):
        return Verdict("listen", "short_ack_transcript")
    if all(word in TICS or word in SHORT_ACKS for word in spoken):
        # Also no words at all: a cough that passed for speech.
        return Verdict("drop" if view.ended else "listen", "silence_or_noise")
    if _is_many(view, spoken) or any(word in COMMANDS for word in spoken):
        return Verdict("barge_in", "overlap_transcript")
    if _claims_floor(view):
        return Verdict("barge_in", "floor_claimed")
    if view.speech_ms <= view.short_ack_ms:
        return Verdict("listen", "short_ack")
    if view.ended and _is_tic(view, spoken):
        return Verdict("drop", "silence_or_noise")
    return Verdict("barge_in", "overlap_transcript")


def _is_many(view: OverlapView, spoken: list[str]) -> bool:
    return len(spoken) >= MANY_WORDS and view.speech_ms >= MANY_WORDS_MS


def _is_tic(view: OverlapView, spoken: list[str]) -> bool:
    """Whether the words are none; the sound tells how it begins, which may be with a hesitation."""
    if all(word in TICS for word in spoken) or (len(spoken) == 1 and spoken[0] in FRAGMENTS):
        return True
    return view.tic is not None and view.tic >= SURE_OF_TIC and not _is_many(view, spoken)


def _claims_floor(view: OverlapView) -> bool:
    """What has fallen silent is judged by its words alone."""
    return view.floor is not None and view.floor >= SURE_OF_FLOOR and not view.ended


def why_not_a_turn(view: OverlapView) -> str | None:
    """Why what was said while nobody answered wants no answer; None if it does.

    Only `adaptive` asks for more than words.
    """
    if not view.transcript:
        return "silence_or_noise"
    if view.policy != "adaptive":
        return None
    if _is_far(view):
        return "non_directed_speech"
    return "silence_or_noise" if _is_tic(view, words(view.transcript)) else None


def _is_far(view: OverlapView) -> bool:
    if view.level_dbfs is None:
        return False
    is_dull = view.brightness_db is not None and view.brightness_db < DULL_DB
    if view.usual_level_dbfs is not None:
        quieter_db = view.usual_level_dbfs - view.level_dbfs
        return quieter_db > (DULL_QUIET_DB if is_dull else QUIET_DB)
    return is_dull and view.level_dbfs < FAR_DBFS


def words(transcript: str) -> list[str]:
    """The words of a transcript in lower case, without punctuation."""
    return re.findall(r"[\w]+(?:[-'][\w]+)*", transcript.lower())


def is_short_ack(spoken: list[str]) -> bool:
    """Whether all of this is assent: `yeah`, `okay, go on`, `mm-hm, mm-hm`."""
    if not spoken or any(word in COMMANDS for word in spoken):
        return False
    rest = " ".join(spoken)
    for phrase in SHORT_ACK_PHRASES:
        rest = re.sub(rf"\b{phrase}\b", " ", rest)
    left = rest.split()
    return all(word in SHORT_ACKS or word in TICS for word in left) and (
        len(left) < len(spoken) or any(word in SHORT_ACKS for word in left)
    )
