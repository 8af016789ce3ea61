"""`omniduplex serve`: load a model, take a port, say where to talk, leave politely."""

from __future__ import annotations

import errno
import logging
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, NoReturn

import typer

from omniduplex.config.default_model import DEFAULT_MODEL

if TYPE_CHECKING:
    from rich.console import Console
    from starlette.applications import Starlette

    from omniduplex.config.pipeline import PipelineConfig
    from omniduplex.entrypoints.async_omni import AsyncOmni
    from omniduplex.entrypoints.duplex.recorder import ConversationRecorder
    from omniduplex.entrypoints.duplex_omni import DuplexOmni
    from omniduplex.entrypoints.openai.server import Certificate

LOG_LEVELS = ("debug", "info", "warning", "error")
ANY_HOST = ("0.0.0.0", "::", "")


class StopWishes:
    """Ctrl+C and SIGTERM are one wish: it waits while an engine starts or stops.

    An engine that is still starting cannot be told to end, and its workers would stay.
    """

    def __init__(self) -> None:
        self._waiting = False
        self.hold()

    def hold(self) -> None:
        """Only remember the wish from now on."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._remember)

    def obey(self) -> None:
        """Raise KeyboardInterrupt when the wish comes, or now if it has.

        uvicorn takes the signals while it serves, and raises them again once it is done.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        if self._waiting:
            raise KeyboardInterrupt

    def _remember(self, *_: object) -> None:
        self._waiting = True


def _log_level(name: str) -> str:
    if name.lower() not in LOG_LEVELS:
        raise typer.BadParameter(f"one of {', '.join(LOG_LEVELS)}")
    return name.lower()


def _origins(given: list[str] | None) -> list[str] | None:
    for origin in given or ():
        if origin != "*" and "://" not in origin:
            raise typer.BadParameter(f"{origin}: an origin has a scheme, as in https://{origin}")
    return given


def serve(
    model: Annotated[
        str | None,
        typer.Argument(
            help=f"{DEFAULT_MODEL}, omniduplex/echo, or one of yours.",
            show_default=f"what the deploy file describes, or {DEFAULT_MODEL}",
        ),
    ] = None,
    deploy_config: Annotated[
        Path | None,
        typer.Option(help="A deploy file (YAML).", exists=True, dir_okay=False),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="TCP port; 0 takes a free one.", min=0, max=65535)
    ] = 8000,
    api_key: Annotated[
        str | None,
        typer.Option(
            help="Key that every /v1 request must carry; better given by the environment.",
            envvar="OMNIDUPLEX_API_KEY",
            show_default=False,
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            callback=_origins,
            help="A web origin whose pages may use this server, or *; may be repeated.",
            show_default=False,
        ),
    ] = None,
    served_model_name: Annotated[
        str | None, typer.Option(help="The model's name for clients.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(help="A directory for a recording of each conversation.", file_okay=False),
    ] = None,
    ssl_certfile: Annotated[
        Path | None,
        typer.Option(help="A certificate chain (PEM): serve https and wss.", exists=True),
    ] = None,
    ssl_keyfile: Annotated[
        Path | None, typer.Option(help="Its key (PEM), if in a file of its own.", exists=True)
    ] = None,
    drain_timeout: Annotated[
        float,
        typer.Option(help="Seconds that live sessions get when the server stops.", min=0.0),
    ] = 5.0,
    log_level: Annotated[
        str, typer.Option(callback=_log_level, help=", ".join(LOG_LEVELS))
    ] = "info",
    log_json: Annotated[bool, typer.Option(help="Log one JSON object a line.")] = False,
) -> None:
    """Serve a model: sessions and a talk page, or turn requests, as its deployment says."""
    from rich.console import Console

    from omniduplex.config.errors import ConfigError
    from omniduplex.entrypoints.openai.server import (
        TalkServer,
        allow_many_sockets,
        bind,
        server_config,
    )
    from omniduplex.models.local.asset_sources import AssetError
    from omniduplex.stages.errors import StageStartError
    from omniduplex.telemetry.logging import LogSettings, setup_logging

    console = Console(stderr=True)
    setup_logging(LogSettings(logging.getLevelNamesMapping()[log_level.upper()], log_json))
    certificate = _certificate(console, ssl_certfile, ssl_keyfile)
    pipeline = _described(console, model, deploy_config)
    allow_many_sockets()
    with _port_errors(console, host, port):
        listener = bind(host, port)
    try:
        wishes = StopWishes()
        console.print(f"Loading {pipeline.model} ...", highlight=False, markup=False)
        omni = load_omni(pipeline)
        try:
            wishes.obey()
            with _recorder(record) as recorder:
                app = build_app(omni, served_model_name, api_key, recorder, allow_origin or ())
                name = served_model_name or omni.pipeline.model
                url = base_url(
                    host, listener.getsockname()[1], scheme="https" if certificate else "http"
                )
                with _port_errors(console, host, port):
                    listener.listen()
                TalkServer(
                    server_config(app, certificate),
                    app,
                    lambda: _say_where(console, name, url, omni),
                    drain_timeout_s=drain_timeout,
                ).run(sockets=[listener])
        finally:
            wishes.hold()
            omni.shutdown()
    except KeyboardInterrupt:
        if _takes_more(sys.stderr):
            console.print("Stopped.")
    except (AssetError, ConfigError, StageStartError) as error:
        _fail(console, str(error))
    finally:
        listener.close()


def _takes_more(stream: IO[str]) -> bool:
    """Whether a write now would not wait, as for a pipe that nobody reads."""
    return bool(select.select([], [stream], [], 0)[1])


def _described(console: Console, model: str | None, deploy_config: Path | None) -> PipelineConfig:
    from omniduplex.config.errors import ConfigError
    from omniduplex.config.loader import load_pipeline

    try:
        return load_pipeline(model, deploy_config)
    except ConfigError as error:
        _fail(console, str(error))


def load_omni(pipeline: PipelineConfig) -> AsyncOmni | DuplexOmni:
    """Start the engine that the deployment's session mode asks for."""
    if pipeline.session_mode == "turn":
        from omniduplex.entrypoints.async_omni import AsyncOmni

        return AsyncOmni(pipeline=pipeline)
    from omniduplex.entrypoints.duplex_omni import DuplexOmni

    return DuplexOmni(pipeline=pipeline)


def build_app(
    omni: AsyncOmni | DuplexOmni,
    served_model_name: str | None = None,
    api_key: str | None = None,
    recorder: ConversationRecorder | None = None,
    allowed_origins: Sequence[str] = (),
) -> Starlette:
    """Build the application that serves what the engine does."""
    from omniduplex.config.errors import ConfigError
    from omniduplex.entrypoints.duplex_omni import DuplexOmni
    from omniduplex.entrypoints.openai.app import create_app
    from omniduplex.entrypoints.openai.turn_app import create_turn_app

    if not isinstance(omni, DuplexOmni):
        if recorder is not None:
            raise ConfigError("--record: in turn mode there are no conversations to record")
        return create_turn_app(
            omni,
            served_model_name=served_model_name,
            api_key=api_key,
            allowed_origins=allowed_origins,
        )
    return create_app(
        omni,
        served_model_name=served_model_name,
        api_key=api_key,
        allowed_origins=allowed_origins,
        recorder=recorder,
        chat=omni if omni.turn_features.supports_chat_completions else None,
    )


def _recorder(
    directory: Path | None,
) -> AbstractContextManager[ConversationRecorder | None]:
    from omniduplex.config.errors import ConfigError
    from omniduplex.entrypoints.duplex.recorder import ConversationRecorder

    if directory is None:
        return nullcontext()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--record: {directory}: {error.strerror or error}") from error
    return ConversationRecorder(directory)


@contextmanager
def _port_errors(console: Console, host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "; try --port" if error.errno == errno.EADDRINUSE else ""
        _fail(console, f"Cannot listen on {host}, port {port}: {error.strerror or error}{hint}")


def _certificate(
    console: Console, certfile: Path | None, keyfile: Path | None
) -> Certificate | None:
    from omniduplex.entrypoints.openai.server import Certificate

    if certfile is None:
        if keyfile is not None:
            raise typer.BadParameter("--ssl-keyfile: the key of no certificate; see --ssl-certfile")
        return None
    certificate = Certificate(certfile, keyfile)
    try:
        certificate.check()
    except OSError as error:  # what TLS does not like is an OSError, too
        _fail(console, f"Cannot serve TLS with {certfile}: {error.strerror or error}")
    return certificate


def base_url(host: str, port: int, *, scheme: str = "http") -> str:
    """Return the URL by which a browser on this machine reaches a server."""
    name = "127.0.0.1" if host in ANY_HOST else host
    return f"{scheme}://[{name}]:{port}" if ":" in name else f"{scheme}://{name}:{port}"


def _say_where(console: Console, model: str, url: str, omni: AsyncOmni | DuplexOmni) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    if omni.pipeline.session_mode == "duplex":
        table.add_row("browser", f"[bold]{url}/")
        table.add_row("websocket", f"{url.replace('http', 'ws', 1)}/v1/realtime  (?duplex=1)")
    refusal = why_not_stock_clients(omni)
    told = f"refused: {refusal}" if refusal else f'base_url="{url}/v1", model="{model}"'
    table.add_row("openai clients", escape(told))
    console.print(f"[bold]{model}[/] is listening. Ctrl+C ends it.")
    console.print(table, highlight=False, soft_wrap=True)


def why_not_stock_clients(omni: AsyncOmni | DuplexOmni) -> str | None:
    """Why a model refuses what stock clients open, the API's default session; None: it does not."""
    from omniduplex.entrypoints.duplex_omni import DuplexOmni
    from omniduplex.protocol.duplex import Dialect, DuplexError, default_config

    if not isinstance(omni, DuplexOmni):
        return None
    try:
        omni.check_config(default_config(omni.pipeline.model, Dialect.OPENAI))
    except DuplexError as error:
        return error.message
    return None


def _fail(console: Console, message: str) -> NoReturn:
    console.print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(1)
