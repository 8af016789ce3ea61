"""`omniduplex bench`: measure a server as its clients see it."""

from __future__ import annotations

import asyncio
import sys
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omniduplex.config.default_model import DEFAULT_MODEL
from omniduplex.entrypoints.cli.bench_endurance import flood, soak
from omniduplex.entrypoints.cli.bench_tools import (
    ECHO_MODEL,
    JsonFile,
    finite,
    serve_command,
    told_failures,
    write_report,
)

if TYPE_CHECKING:
    from omniduplex.benchmarks.overhead import Side
    from omniduplex.benchmarks.questions import Question

app = typer.Typer(
    help="Measure latency, overhead, cancels, turn taking, load and endurance.",
    no_args_is_help=True,
)
app.command()(flood)
app.command()(soak)

VOICE_ASSET, VOICE_NAME = "piper_joe", "en_US-joe-medium"
# The voice draws its prosody at random; with a seed, every run asks in the same tone.
VOICE_SEED = 1

ApiKey = Annotated[
    str | None,
    typer.Option(
        help="The server's key; better given by the environment.",
        envvar="OMNIDUPLEX_API_KEY",
        show_default=False,
    ),
]


class Vad(StrEnum):
    """Who ends a turn; with `none` the client commits right after the question."""

    SERVER = "server_vad"
    SEMANTIC = "semantic_vad"
    NONE = "none"


@app.command()
def latency(
    url: Annotated[
        str | None, typer.Option(help="A server, ws://host:port; none: one is started.")
    ] = None,
    model: Annotated[str, typer.Option(help="The model to ask.")] = DEFAULT_MODEL,
    json_file: JsonFile = None,
    turns: Annotated[int, typer.Option(help="Questions to ask.", min=1)] = 24,
    vad: Annotated[Vad, typer.Option(help="Who ends a turn.")] = Vad.SERVER,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="WAVs to ask, their words in a .txt beside each; none: the embedded voice asks.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    api_key: ApiKey = None,
) -> None:
    """End of user speech to first audio, over spoken questions in real time."""
    from rich.console import Console

    from omniduplex.benchmarks.latency import measure_latency, report_latency, session_config
    from omniduplex.benchmarks.machine import describe_machine
    from omniduplex.benchmarks.questions import load_questions
    from omniduplex.benchmarks.server_process import serve
    from omniduplex.benchmarks.tables import show_latency, show_turn
    from omniduplex.clients import DuplexClient, MonotonicClock

    console = Console()

    def run(server_url: str) -> None:
        machine = describe_machine()
        clock = MonotonicClock()
        client = DuplexClient(
            server_url,
            model=model,
            api_key=api_key,
            clock=clock,
            config=session_config(vad.value),
        )
        measured = asyncio.run(
            measure_latency(
                client,
                clock,
                vad.value,
                asked,
                turns=turns,
                on_turn=lambda turn: show_turn(console, turn),
            )
        )
        report = report_latency(
            measured,
            machine=machine,
            model=model,
            vad=vad.value,
            voice_of_questions=asked_by,
        )
        show_latency(console, report)
        write_report(json_file, report)

    with told_failures():
        if questions is None:
            asked, asked_by = _spoken_questions(), f"embedded voice {VOICE_NAME}"
        else:
            asked, asked_by = load_questions(questions), f"recordings in {questions.name}"
        if url is not None:
            run(url)
            return
        with serve(serve_command(model)) as server:
            run(server.url)


@app.command()
def overhead(
    json_file: JsonFile = None,
    sessions: Annotated[int, typer.Option(help="Concurrent sessions.", min=1, max=256)] = 20,
    seconds: Annotated[
        float,
        typer.Option(
            help="How long each server is measured, idle and under load.", min=0.5, callback=finite
        ),
    ] = 20.0,
) -> None:
    """CPU per 80 ms frame in and out with echo, beside that of a bare WebSocket loop."""
    from rich.console import Console

    from omniduplex.benchmarks.baseline import BaselineCaller
    from omniduplex.benchmarks.frames import Frames
    from omniduplex.benchmarks.machine import describe_machine
    from omniduplex.benchmarks.overhead import EchoCaller, measure, report_overhead
    from omniduplex.benchmarks.server_process import ServerProcess, serve
    from omniduplex.benchmarks.tables import show_overhead
    from omniduplex.clients import MonotonicClock

    clock = MonotonicClock()
    machine = describe_machine()

    def stack(server: ServerProcess) -> Side:
        frames = [Frames(clock) for _ in range(sessions)]
        callers = [EchoCaller(server.url, ECHO_MODEL, clock, counted) for counted in frames]
        return asyncio.run(measure(callers, frames, server.cpu_seconds, clock, seconds))

    def baseline(server: ServerProcess) -> Side:
        frames = [Frames(clock) for _ in range(sessions)]
        callers = [BaselineCaller(server.url, counted) for counted in frames]
        return asyncio.run(measure(callers, frames, server.cpu_seconds, clock, seconds))

    paced = resources.files("omniduplex.benchmarks") / "paced_echo.yaml"
    with told_failures():
        with resources.as_file(paced) as deploy, serve(serve_command(ECHO_MODEL, deploy)) as echo:
            ours = stack(echo)
        with serve([sys.executable, "-m", "omniduplex.benchmarks.baseline"]) as bare:
            theirs = baseline(bare)
        report = report_overhead(ours, theirs, machine=machine, model=ECHO_MODEL, sessions=sessions)
        show_overhead(Console(), report)
        write_report(json_file, report)


@app.command()
def cancel(
    json_file: JsonFile = None,
    sessions: Annotated[int, typer.Option(help="Concurrent sessions.", min=1, max=256)] = 50,
    cancels: Annotated[int, typer.Option(help="Answers that each session cancels.", min=1)] = 20,
) -> None:
    """How long an answer of echo goes on after its cancel, and that it ends for good."""
    from random import Random

    from rich.console import Console

    from omniduplex.benchmarks.cancel import CancelCaller, cancel_all, report_cancel
    from omniduplex.benchmarks.machine import describe_machine
    from omniduplex.benchmarks.server_process import serve
    from omniduplex.benchmarks.tables import show_cancel
    from omniduplex.clients import MonotonicClock

    clock, machine = MonotonicClock(), describe_machine()
    paced = resources.files("omniduplex.benchmarks") / "paced_echo.yaml"
    with (
        told_failures(),
        resources.as_file(paced) as deploy,
        serve(serve_command(ECHO_MODEL, deploy)) as server,
    ):
        callers = [
            CancelCaller(server.url, ECHO_MODEL, clock, Random(index)) for index in range(sessions)
        ]
        asyncio.run(cancel_all(callers, cancels))
        logs = [caller.log for caller in callers]
        report = report_cancel(logs, machine=machine, model=ECHO_MODEL)
        show_cancel(Console(), report)
        write_report(json_file, report)


class Dialect(StrEnum):
    """What is spoken with the server."""

    DUPLEX = "duplex"
    OPENAI = "openai"


@app.command()
def turns(
    url: Annotated[
        str | None, typer.Option(help="A server, ws://host:port; none: one is started.")
    ] = None,
    model: Annotated[str, typer.Option(help="The model to talk with.")] = DEFAULT_MODEL,
    json_file: JsonFile = None,
    out: Annotated[
        Path | None, typer.Option(help="Where two-channel WAVs and pictures go.", file_okay=False)
    ] = None,
    policy: Annotated[
        str, typer.Option(help="What the session does about overlapping speech.")
    ] = "barge_in_on_speech",
    vad: Annotated[
        Vad,
        typer.Option(
            "--turn-detection",
            "--vad",
            help="What ends a turn; a model that knows no meaning waits as for server_vad.",
        ),
    ] = Vad.SEMANTIC,
    dialect: Annotated[
        Dialect, typer.Option(help="`openai` talks with any OpenAI Realtime server.")
    ] = Dialect.DUPLEX,
    scenarios: Annotated[str, typer.Option(help="Names with commas between them; none: all.")] = "",
    voices: Annotated[str, typer.Option(help="Names with commas between them; none: all.")] = "",
    quick: Annotated[bool, typer.Option(help="One voice, two scenarios, unless named.")] = False,
    parallel: Annotated[int, typer.Option(help="Conversations at once.", min=1, max=64)] = 1,
    seed: Annotated[int, typer.Option(help="Of all noises.", min=0)] = 1,
    api_key: ApiKey = None,
) -> None:
    """Turn taking: pauses, interruptions, backchannels, noise, on recorded time lines."""
    from rich.console import Console

    from omniduplex.benchmarks.server_process import serve
    from omniduplex.benchmarks.turns.command import Choice, measure_turns

    choice = Choice(
        model=model,
        dialect=dialect.value,
        policy=policy,
        vad=vad.value,
        scenarios=_names(scenarios),
        voices=_names(voices),
        quick=quick,
        parallel=parallel,
        seed=seed,
        out=out,
        api_key=api_key,
    )
    with told_failures():
        choice.check()
        if url is not None:
            write_report(json_file, measure_turns(choice, url, Console(), started_here=False))
            return
        with serve(serve_command(model)) as server:
            write_report(json_file, measure_turns(choice, server.url, Console(), started_here=True))


class Backend(StrEnum):
    """How the server is spoken with."""

    DUPLEX = "openai-realtime-duplex"
    OPENAI = "openai-realtime"


class Questions(StrEnum):
    """What is asked when there is no data set."""

    SPEECH = "speech"
    TONE = "tone"


@app.command("serve")
def serve_under_load(
    url: Annotated[
        str | None, typer.Option(help="A server, ws://host:port; none: echo is started.")
    ] = None,
    model: Annotated[str, typer.Option(help="The model to ask.")] = ECHO_MODEL,
    backend: Annotated[
        Backend, typer.Option(help="`openai-realtime` measures any OpenAI Realtime server.")
    ] = Backend.DUPLEX,
    json_file: JsonFile = None,
    concurrency: Annotated[
        str, typer.Option(help="Closed loop: callers at a time; with commas, one after the other.")
    ] = "",
    rate: Annotated[
        float | None,
        typer.Option(help="Open loop: sessions per second, as a Poisson process.", callback=finite),
    ] = None,
    sessions: Annotated[
        int | None,
        typer.Option(help="Sessions of each load; none: one a caller, 20 in open loop.", min=1),
    ] = None,
    questions: Annotated[int, typer.Option(help="Questions of each session.", min=1)] = 3,
    dataset: Annotated[
        Path | None, typer.Option(help="WAVs to ask.", exists=True, file_okay=False)
    ] = None,
    synthetic: Annotated[
        Questions, typer.Option(help="What is asked without a data set.")
    ] = Questions.SPEECH,
    plots: Annotated[
        Path | None, typer.Option(help="Where pictures go, as SVG.", file_okay=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of arrivals and tones.", min=0)] = 1,
    api_key: ApiKey = None,
) -> None:
    """Sessions under load: first audio, real-time factor, and gaps that a listener would hear."""
    from rich.console import Console

    from omniduplex.benchmarks.serve.command import ServeChoice, measure_serve
    from omniduplex.benchmarks.serve.dataset import Synthetic
    from omniduplex.benchmarks.server_process import serve

    choice = ServeChoice(
        model=model,
        backend=backend.value,
        concurrency=concurrency.replace(" ", ""),
        rate_per_s=rate,
        sessions=sessions,
        questions=questions,
        dataset=dataset,
        synthetic=Synthetic(synthetic.value),
        seed=seed,
        plots=plots,
        api_key=api_key,
    )
    with told_failures():
        choice.levels()
        if url is not None:
            write_report(json_file, measure_serve(choice, url, Console(), started_here=False))
            return
        paced = resources.files("omniduplex.benchmarks") / "paced_echo.yaml"
        with resources.as_file(paced) as deploy:
            command = serve_command(model, deploy if model == ECHO_MODEL else None)
            with serve(command) as server:
                report = measure_serve(choice, server.url, Console(), started_here=True)
        write_report(json_file, report)


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.replace(" ", "").split(",")))


def _spoken_questions() -> list[Question]:
    from omniduplex.models.local.runtimes import require_runtimes

    require_runtimes()
    import onnxruntime

    from omniduplex.benchmarks.questions import QUESTION_TEXTS, question
    from omniduplex.models.local.assets import asset_path
    from omniduplex.models.local.voice import Voice

    onnxruntime.set_seed(VOICE_SEED)
    path = asset_path(VOICE_ASSET) / f"{VOICE_NAME}.onnx"
    voice = Voice(path, path.with_name(f"{path.name}.json"))
    return [question(text, voice.say(text), voice.rate, text) for text in QUESTION_TEXTS]
