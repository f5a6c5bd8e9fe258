"""From YAML and overrides to a checked configuration."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from pipelines.config.defects import DefectConfig
from pipelines.config.text import TextConfig
from pipelines.errors import UsageError

Config = TextConfig | DefectConfig
CONFIGS: Mapping[str, type[TextConfig] | type[DefectConfig]] = {
    "text_detection": TextConfig,
    "defect_detection": DefectConfig,
}
_DEFAULT_TASK = "text_detection"


def load_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read, override and check a configuration.

    Args:
        path: YAML file.
        overrides: "section.key=value", the value in YAML.

    Raises:
        UsageError: with every fault of the file and the overrides.
    """
    try:
        raw = yaml.load(path.read_text(encoding="utf-8-sig"), Loader=_Loader)
    except FileNotFoundError:
        raise UsageError(f"configuration {path} does not exist; ready ones are under configs/") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as fault:
        raise UsageError(f"configuration {path} can't be read as YAML: {fault}") from None
    if not isinstance(raw, dict):
        raise UsageError(f"configuration {path} must hold sections (run, data, model, …), but got {type(raw).__name__}")
    for override in overrides:
        _apply(raw, override)
    model = _config_class(path, raw)
    try:
        return model.model_validate(raw)
    except ValidationError as fault:
        lines = [_explain(error, model) for error in fault.errors()]
        raise UsageError(f"configuration {path} has {len(lines)} fault(s):\n  " + "\n  ".join(lines)) from None


def _config_class(path: Path, raw: Mapping[str, Any]) -> type[TextConfig] | type[DefectConfig]:
    """The configuration of the task that `data.task` names."""
    data = raw.get("data")
    task = data.get("task", _DEFAULT_TASK) if isinstance(data, dict) else _DEFAULT_TASK
    if task not in CONFIGS:
        raise UsageError(f"configuration {path}: data.task must be one of {', '.join(CONFIGS)}, but got {task!r}")
    return CONFIGS[task]


def dump_config(config: Config) -> str:
    """The configuration as run, as YAML."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice in one section, where YAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} stands twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _apply(raw: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    names = key.strip().split(".")
    if not separator or not all(names):
        raise UsageError(f"-o {override!r} must look like section.key=value, for example train.updates=10")
    section = raw
    for name in names[:-1]:
        section = section.setdefault(name, {})
        if not isinstance(section, dict):
            raise UsageError(f"-o {override!r}: {name!r} is a value, not a section")
    try:
        section[names[-1]] = yaml.safe_load(text)
    except yaml.YAMLError:
        raise UsageError(f"-o {override!r}: {text!r} is not a YAML value") from None


def _explain(error: Any, model: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "(file)"
    if error["type"] == "extra_forbidden":
        close = difflib.get_close_matches(where, known_keys(model), n=1, cutoff=0.5)
        return f"{where}: unknown key" + (f"; did you mean {close[0]}?" if close else "")
    if error["type"] == "missing":
        return f"{where}: required, but missing"
    if error["type"] == "string_type":
        return f"{where}: must be text, but got {error['input']!r}; put it in quotes"
    return f"{where}: {error['msg'].removeprefix('Value error, ')}, but got {error['input']!r}"


def known_keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    """Every section and key of a configuration, dotted."""
    keys = []
    for name, field in model.model_fields.items():
        keys.append(prefix + name)
        inner = [field.annotation, *getattr(field.annotation, "__args__", ())]
        for candidate in inner:
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                keys.extend(known_keys(candidate, f"{prefix}{name}."))
    return keys
