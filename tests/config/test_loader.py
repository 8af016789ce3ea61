from pathlib import Path
from typing import Protocol

import pytest

from omniduplex.config.errors import ConfigError
from omniduplex.config.loader import builtin_layers, load_pipeline

CUSTOM = """
duplex_plugin: my.plugin:Plugin
turn_plugin: my.turns:Plugin
session_mode: duplex
stages:
  - {stage_id: 0, name: all, model_class: "my.stage:Stage", options: {depth: {a: 1, b: 2}}}
"""


class Write(Protocol):
    def __call__(self, text: str, name: str = "deploy.yaml") -> Path: ...


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str, name: str = "deploy.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("model", ["local", "omniduplex/local"])
def test_the_local_pipeline_hears_and_speaks_in_processes_of_their_own(model: str) -> None:
    config = load_pipeline(model, None)

    assert (config.name, config.model, config.session_mode) == (
        "local",
        "omniduplex/local",
        "duplex",
    )
    assert config.duplex_plugin == "omniduplex.models.local.plugin:LocalDuplexPlugin"
    assert config.turn_plugin == "omniduplex.models.local.turn:LocalTurnPlugin"
    assert [(s.stage_id, s.name, s.worker, s.nice) for s in config.stages] == [
        (0, "listen", "process", 0),
        (1, "speak", "process", 3),
    ]
    assert config.duplex_session.max_sessions == 4
    assert config.duplex_session.disconnect_grace_s == 30


@pytest.mark.parametrize("model", ["echo", "omniduplex/echo"])
def test_the_echo_pipeline_needs_no_worker(model: str) -> None:
    config = load_pipeline(model, None)

    assert (config.name, config.model) == ("echo", "omniduplex/echo")
    assert [(s.model_class, s.worker) for s in config.stages] == [
        ("omniduplex.models.echo.stage:EchoStage", "inline")
    ]
    assert config.duplex_session.max_sessions == 256


def test_an_unknown_model_is_answered_with_the_ones_there_are() -> None:
    with pytest.raises(ConfigError, match=r"'whisper' is not built in \(there are: echo, local\)"):
        load_pipeline("whisper", None)


@pytest.mark.parametrize("name", sorted(builtin_layers()))
def test_a_deploy_file_changes_only_what_it_names(name: str, write: Write) -> None:
    path = write("duplex_session: {max_sessions: 9}\nstages: [{stage_id: 0, nice: 3}]\n")

    plain, changed = load_pipeline(name, None), load_pipeline(name, path)

    assert changed.duplex_session.max_sessions == 9
    assert changed.duplex_session.disconnect_grace_s == plain.duplex_session.disconnect_grace_s
    assert changed.stages[0].nice == 3
    assert changed.stages[0].model_class == plain.stages[0].model_class
    assert changed.stages[1:] == plain.stages[1:]


@pytest.mark.parametrize("model", [None, "echo", "omniduplex/echo"])
def test_a_model_may_be_asked_for_that_the_file_describes(model: str | None, write: Write) -> None:
    config = load_pipeline(model, write("pipeline: echo\n"))

    assert (config.name, config.model) == ("echo", "omniduplex/echo")


@pytest.mark.parametrize("model", [None, "echo", "omniduplex/echo", "it"])
def test_the_model_key_decides_the_name_served(model: str | None, write: Write) -> None:
    config = load_pipeline(model, write("pipeline: echo\nmodel: it\n"))

    assert (config.name, config.model) == ("echo", "it")


@pytest.mark.parametrize(
    ("asked", "text", "described"),
    [
        ("omniduplex/local", "pipeline: echo", "omniduplex/echo"),
        ("local", "pipeline: echo", "omniduplex/echo"),
        ("acme/voice", "pipeline: echo", "omniduplex/echo"),
        ("acme/voice", "pipeline: echo\nmodel: it", "it"),
        ("omniduplex/local", "pipeline: mine" + CUSTOM, "mine"),
    ],
)
def test_a_file_that_describes_another_model_is_refused_and_both_are_named(
    asked: str, text: str, described: str, write: Write
) -> None:
    told = rf"deploy\.yaml: describes the model '{described}', and '{asked}' was asked for"
    with pytest.raises(ConfigError, match=told):
        load_pipeline(asked, write(text))


def test_a_file_whose_base_describes_another_model_is_refused(write: Write) -> None:
    write("pipeline: echo\n", "base.yaml")

    with pytest.raises(ConfigError, match=r"'omniduplex/echo', and 'omniduplex/local' was asked"):
        load_pipeline("omniduplex/local", write("base_config: base.yaml\n"))


def test_who_asks_for_nothing_gets_the_default_or_what_the_file_describes(write: Write) -> None:
    assert load_pipeline(None, None) == load_pipeline("omniduplex/local", None)
    assert load_pipeline(None, write("session_mode: turn\n")).name == "local"
    mine = load_pipeline(None, write("pipeline: mine" + CUSTOM))
    assert (mine.name, mine.model) == ("mine", "mine")


def test_the_path_of_a_file_may_be_a_string(write: Write) -> None:
    path = write("session_mode: turn\n")

    assert load_pipeline("echo", str(path)) == load_pipeline("echo", path)


def test_a_deploy_file_can_describe_a_pipeline_that_is_not_built_in(write: Write) -> None:
    config = load_pipeline("acme/voice", write(CUSTOM))

    assert (config.name, config.model) == ("acme/voice", "acme/voice")
    assert config.stages[0].options == {"depth": {"a": 1, "b": 2}}


def test_base_config_is_relative_to_the_file_and_merges_deeply(write: Write) -> None:
    write(CUSTOM + "duplex_session: {max_sessions: 3, idle_ttl_s: 60}\n", "bases/base.yaml")
    write("base_config: bases/base.yaml\nduplex_session: {max_sessions: 5}\n", "middle.yaml")
    top = write(
        "base_config: middle.yaml\n"
        "duplex_session: {idle_ttl_s: null}\n"
        "stages:\n"
        "  - {stage_id: 0, options: {depth: {b: 7}}}\n"
        "  - {stage_id: 1, name: more, model_class: 'my.stage:More'}\n"
    )

    config = load_pipeline("acme/voice", top)

    assert config.duplex_session.max_sessions == 5
    assert config.duplex_session.idle_ttl_s is None
    assert config.stages[0].options == {"depth": {"a": 1, "b": 7}}
    assert [stage.name for stage in config.stages] == ["all", "more"]


def test_base_config_may_set_the_session_mode(write: Write) -> None:
    write(CUSTOM.replace("session_mode: duplex", "session_mode: turn"), "base.yaml")

    assert load_pipeline("m", write("base_config: base.yaml\n")).session_mode == "turn"


def test_files_that_inherit_in_a_circle_are_refused(write: Write) -> None:
    write("base_config: b.yaml\n", "a.yaml")
    b = write("base_config: a.yaml\n", "b.yaml")

    with pytest.raises(ConfigError, match="inherit in a circle"):
        load_pipeline("echo", b)


def test_a_missing_file_is_named_and_so_is_the_file_that_wants_it(
    write: Write, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"^cannot read .*none\.yaml: No such file"):
        load_pipeline("echo", tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"deploy\.yaml: base_config: cannot read .*none\.yaml"):
        load_pipeline("echo", write("base_config: none.yaml\n"))


def test_a_duplex_plugin_makes_session_mode_mandatory(write: Write) -> None:
    with pytest.raises(ConfigError, match="session_mode: is missing"):
        load_pipeline("m", write(CUSTOM.replace("session_mode: duplex\n", "")))


def test_without_a_duplex_plugin_there_are_only_turns(write: Write) -> None:
    stages = (
        "turn_plugin: my.turns:Plugin\n"
        "stages: [{stage_id: 0, name: s, model_class: 'my.stage:Stage'}]\n"
    )

    assert load_pipeline("m", write(stages)).session_mode == "turn"
    with pytest.raises(ConfigError, match="session_mode: duplex needs a duplex_plugin"):
        load_pipeline("m", write(stages + "session_mode: duplex\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sesion_mode: duplex", r"deploy\.yaml: sesion_mode: unknown key"),
        ("name: x", "name: unknown key"),
        ("duplex_session: {max_session: 1}", r"duplex_session\.max_session: unknown key"),
        ("stages: [{stage_id: 0, gpu: 1}]", r"stages\[0\]\.gpu: unknown key"),
        ("stages: [{nice: 1}]", r"stages\[0\]\.stage_id: is missing"),
        ("stages: [{stage_id: 0}, {stage_id: 0}]", r"stages\[1\]\.stage_id: comes twice"),
        ("stages: {stage_id: 0}", "stages: must be a list"),
        ("stages: [listen]", r"stages\[0\]: must be a mapping"),
        ("duplex_session: 3", "duplex_session: must be a mapping"),
        ("session_mode: both", "session_mode: is one of turn, duplex, not 'both'"),
        ("duplex_session: {max_sessions: 0}", r"duplex_session\.max_sessions: Expected `int` >= 1"),
        ("duplex_session: {max_sessions: '4'}", r"duplex_session\.max_sessions: Expected `int`"),
        ("duplex_session: {max_sessions: true}", r"duplex_session\.max_sessions: Expected `int`"),
        ("duplex_session: {idle_ttl_s: -1}", r"duplex_session\.idle_ttl_s: Expected `float` > 0"),
        ("duplex_session: {reaper_interval_s: .nan}", r"reaper_interval_s: Expected `float` > 0"),
        ("duplex_session: {disconnect_grace_s: null}", r"duplex_session\.disconnect_grace_s: Exp"),
        ("stages: [{stage_id: 0, nice: 20}]", r"stages\[0\]\.nice: Expected `int` <= 19"),
        ("stages: [{stage_id: 0, replicas: 0}]", r"stages\[0\]\.replicas: Expected `int` >= 1"),
        (
            "stages: [{stage_id: 0, worker: gpu}]",
            r"stages\[0\]\.worker: is one of process, thread, inline, not 'gpu'",
        ),
        ("stages: [{stage_id: 0, model_class: a.b}]", r"stages\[0\]\.model_class: Expected `str`"),
        ("stages: [{stage_id: 5}]", "stage 5: name is missing"),
        ("stages: [{stage_id: 5, name: x}]", "stage 5: model_class is missing"),
        (
            "stages: [{stage_id: 5, name: echo, model_class: 'a:B'}]",
            "two have the same name: echo, echo",
        ),
        ("duplex_plugin: null", "session_mode: duplex needs a duplex_plugin"),
        ("session_mode: turn\nturn_plugin: null", "session_mode: turn needs a turn_plugin"),
        ("max_turns: 0", "max_turns: Expected `int` >= 1"),
        ("pipeline: whisper", "pipeline 'whisper' is not built in"),
        ("- a", "the file: must be a mapping"),
        ("", "the file: must be a mapping"),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_wrong_deploy_file_is_refused_with_the_path_of_the_key(
    text: str, message: str, write: Write
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_pipeline("echo", write(text))


def test_a_pipeline_has_a_stage(write: Write) -> None:
    with pytest.raises(ConfigError, match="stages: there must be at least one"):
        load_pipeline("x", write("session_mode: turn\nstages: []"))


def test_an_error_in_a_base_names_the_base(write: Write) -> None:
    write("nope: 1\n", "base.yaml")

    with pytest.raises(ConfigError, match=r"base\.yaml: nope: unknown key"):
        load_pipeline("echo", write("base_config: base.yaml\n"))
