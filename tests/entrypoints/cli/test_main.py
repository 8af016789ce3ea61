from __future__ import annotations

import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from omniduplex.entrypoints.cli.main import app
from omniduplex.entrypoints.cli.serve import base_url


def test_help_names_the_commands() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert {"serve", "pull", "talk", "bench"} <= set(result.output.split())


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'numpy', 'uvicorn', 'starlette', 'onnxruntime', 'msgspec', 'websockets'}"
    code = f"import omniduplex.entrypoints.cli.main, sys; print({heavy} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "set()\n"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://127.0.0.1:8000"),
        ("::1", "http://[::1]:8000"),
        ("box.example", "http://box.example:8000"),
    ],
)
def test_the_printed_url_is_one_that_a_browser_can_open(host: str, url: str) -> None:
    assert base_url(host, 8000) == url


def test_an_unknown_log_level_is_refused() -> None:
    result = CliRunner().invoke(app, ["serve", "--log-level", "chatty"])
    assert result.exit_code == 2


def test_an_unknown_asset_is_told_without_a_traceback() -> None:
    result = CliRunner().invoke(app, ["pull", "no-such-asset"])
    assert result.exit_code == 1
    assert "unknown asset 'no-such-asset'" in result.output


def test_the_version_is_that_of_the_package() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.output == f"omniduplex {version('omniduplex')}\n"


def test_the_assets_are_listed_without_fetching_any() -> None:
    result = CliRunner().invoke(app, ["pull", "--list"])
    assert {"smollm2", "qwen2.5-0.5b"} <= set(result.output.split())
    assert "on request" in result.output


def test_a_port_in_use_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "omniduplex.entrypoints.cli.main"]
        served = subprocess.run(
            [*command, "serve", "omniduplex/echo", "--port", port], capture_output=True, text=True
        )
    assert served.returncode == 1
    assert "try --port" in served.stderr


def test_a_port_below_zero_is_refused() -> None:
    assert CliRunner().invoke(app, ["serve", "--port", "-1"]).exit_code == 2


@pytest.mark.parametrize("command", [["bench", "flood"], ["bench", "soak"], ["replay", __file__]])
def test_a_report_that_cannot_be_written_is_refused_before_the_work(
    command: list[str], tmp_path: Path
) -> None:
    result = CliRunner().invoke(app, [*command, "--json", str(tmp_path)])
    assert result.exit_code == 2
    assert "--json" in result.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--allow-origin", "app.example"], "https://app.example"),
        (["--ssl-keyfile", __file__], "--ssl-certfile"),
    ],
)
def test_options_that_could_not_work_are_refused(arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(app, ["serve", "omniduplex/echo", "--port", "0", *arguments])
    assert result.exit_code == 2
    assert told in result.output


def test_a_certificate_that_is_none_is_told_in_a_line() -> None:
    command = ["serve", "omniduplex/echo", "--port", "0", "--ssl-certfile", __file__]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert "Cannot serve TLS with" in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_deploy_file_of_another_model_is_told_in_a_line_that_names_both(tmp_path: Path) -> None:
    deploy = tmp_path / "deploy.yaml"
    deploy.write_text("pipeline: echo\n", "utf-8")
    command = ["serve", "omniduplex/local", "--port", "0", "--deploy-config", str(deploy)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert "describes the model 'omniduplex/echo'" in result.output
    assert "'omniduplex/local' was asked for" in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_directory_that_cannot_be_made_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "folder")
    command = [sys.executable, "-m", "omniduplex.entrypoints.cli.main"]
    for arguments in (
        ["serve", "omniduplex/echo", "--port", "0", "--record", folder],
        ["pull", "silero_vad", "--assets-dir", folder],
    ):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True)
        assert done.returncode == 1
        assert folder in done.stderr
        assert "Traceback" not in done.stderr
