"""Deploy files: reading, inheriting, checking, and what results, a `PipelineConfig`.

A deployment is built from layers, each over the one before: a built-in pipeline, then the chain of
`base_config` files, then the file itself. Every layer is checked on its own, so that an error
names the file and the key as its author wrote them.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from omniduplex.config.default_model import DEFAULT_MODEL
from omniduplex.config.errors import ConfigError
from omniduplex.config.pipeline import (
    DuplexSessionRuntimeConfig,
    PipelineConfig,
    StageConfig,
    Text,
)

Layer = dict[str, Any]

DEPLOY_DIR = resources.files("omniduplex.config") / "deploy"


def _field_types(struct: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.encode_name: field.type for field in msgspec.structs.fields(struct)}


SESSION_KEYS = _field_types(DuplexSessionRuntimeConfig)
STAGE_KEYS = _field_types(StageConfig)
# The pipeline's name is the key `pipeline`, which also chooses what the file builds upon.
TOP_KEYS = {
    **_field_types(PipelineConfig),
    "pipeline": Text,
    "base_config": Text,
}
del TOP_KEYS["name"]


def load_pipeline(model: str | None, deploy_config: str | Path | None) -> PipelineConfig:
    """The deployment of a model: a built-in one, or what a deploy file makes of it.

    `model` is the name of a pipeline, or the one that clients see; None is what the file describes,
    or the default model where it names none. Raises `ConfigError`, also where the file describes
    another model than was asked for.
    """
    built_in = builtin_layers()
    aliases = {layer["model"]: name for name, layer in built_in.items()}
    asked = model or DEFAULT_MODEL
    if deploy_config is None:
        origin, layer = f"model {asked!r}", {}
    else:
        origin, layer = str(deploy_config), _read_chain(Path(deploy_config), ())
    name = layer.get("pipeline") or aliases.get(asked, asked)
    base = built_in.get(name, {})
    if not base and "stages" not in layer:
        known = ", ".join(sorted(built_in))
        raise ConfigError(
            f"{origin}: pipeline {name!r} is not built in (there are: {known}), "
            "and no deploy file describes its stages"
        )
    merged = {"model": name, **_merge(base, layer)}
    if model not in (None, name, merged["model"], base.get("model")):
        message = f"{origin}: describes the model {merged['model']!r}, and {model!r} was asked for"
        raise ConfigError(message)
    return _finish(merged, name, origin)


def builtin_layers() -> dict[str, Layer]:
    """The deploy files that come with the package, by the name of their pipeline."""
    layers = {}
    for entry in DEPLOY_DIR.iterdir():
        if entry.name.endswith(".yaml"):
            layer = _parse(entry.read_bytes(), entry.name)
            layers[layer["pipeline"]] = layer
    return layers


def _read_chain(path: Path, above: tuple[Path, ...]) -> Layer:
    path = path.resolve()
    if path in above:
        chain = " -> ".join(str(file) for file in (*above, path))
        raise ConfigError(f"{above[-1]}: base_config: the files inherit in a circle: {chain}")
    try:
        content = path.read_bytes()
    except OSError as error:
        asked_by = f"{above[-1]}: base_config: " if above else ""
        raise ConfigError(f"{asked_by}cannot read {path}: {error.strerror}") from error
    layer = _parse(content, str(path))
    base = layer.pop("base_config", None)
    if base is None:
        return layer
    return _merge(_read_chain(path.parent / base, (*above, path)), layer)


def _parse(content: bytes, origin: str) -> Layer:
    try:
        raw = msgspec.yaml.decode(content)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{origin}: not valid YAML: {error}") from error
    layer = _check_keys(raw, TOP_KEYS, origin, "")
    if "duplex_session" in layer:
        _check_keys(layer["duplex_session"], SESSION_KEYS, origin, "duplex_session.")
    if "stages" in layer:
        _check_stages(layer["stages"], origin)
    return layer


def _check_stages(stages: Any, origin: str) -> None:
    if not isinstance(stages, list):
        raise ConfigError(f"{origin}: stages: must be a list")
    seen = set()
    for index, raw in enumerate(stages):
        stage = _check_keys(raw, STAGE_KEYS, origin, f"stages[{index}].")
        if "stage_id" not in stage:
            raise ConfigError(f"{origin}: stages[{index}].stage_id: is missing")
        if stage["stage_id"] in seen:
            raise ConfigError(f"{origin}: stages[{index}].stage_id: comes twice in this file")
        seen.add(stage["stage_id"])


def _check_keys(raw: Any, types: dict[str, Any], origin: str, path: str) -> Layer:
    """Check the keys of one mapping, and the values that are not mappings of ours themselves."""
    if not isinstance(raw, dict):
        raise ConfigError(f"{origin}: {path.rstrip('.') or 'the file'}: must be a mapping")
    for key, value in raw.items():
        if key not in types:
            known = ", ".join(sorted(types))
            raise ConfigError(f"{origin}: {path}{key}: unknown key (there are: {known})")
        if not path and key in ("duplex_session", "stages"):
            continue
        try:
            msgspec.convert(value, types[key])
        except msgspec.ValidationError as error:
            choices = get_args(types[key]) if get_origin(types[key]) is Literal else ()
            reason = f"is one of {', '.join(choices)}, not {value!r}" if choices else error
            raise ConfigError(f"{origin}: {path}{key}: {reason}") from error
    return raw


def _merge(base: Layer, over: Layer) -> Layer:
    """Mappings merge deeply, stages by their id; anything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = _merge(old, value)
        elif key == "stages" and isinstance(old, list):
            merged[key] = _merge_stages(old, value)
        else:
            merged[key] = value
    return merged


def _merge_stages(base: list[Layer], over: list[Layer]) -> list[Layer]:
    by_id = {stage["stage_id"]: stage for stage in base}
    for stage in over:
        by_id[stage["stage_id"]] = _merge(by_id.get(stage["stage_id"], {}), stage)
    return list(by_id.values())


def _finish(merged: Layer, name: str, origin: str) -> PipelineConfig:
    for stage in merged["stages"]:
        for key in ("name", "model_class"):
            if key not in stage:
                raise ConfigError(f"{origin}: stage {stage['stage_id']}: {key} is missing")
    if merged.get("duplex_plugin") is None:
        merged.setdefault("session_mode", "turn")
    elif "session_mode" not in merged:
        raise ConfigError(
            f"{origin}: session_mode: is missing, and a pipeline with a duplex plugin needs it"
        )
    merged.pop("pipeline", None)
    config = msgspec.convert({**merged, "name": name}, PipelineConfig)
    _check_pipeline(config, origin)
    return config


def _check_pipeline(config: PipelineConfig, origin: str) -> None:
    """What holds between keys; that of each key alone is in the types."""
    if not config.stages:
        raise ConfigError(f"{origin}: stages: there must be at least one")
    names = [stage.name for stage in config.stages]
    if len(set(names)) < len(names):
        raise ConfigError(f"{origin}: stages: two have the same name: {', '.join(names)}")
    if config.session_mode == "duplex" and config.duplex_plugin is None:
        raise ConfigError(f"{origin}: session_mode: duplex needs a duplex_plugin")
    if config.session_mode == "turn" and config.turn_plugin is None:
        raise ConfigError(f"{origin}: session_mode: turn needs a turn_plugin")
