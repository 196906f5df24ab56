"""The reference of the settings file: keys, defaults and bounds from the code, one sentence each from settings.yaml."""

from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import yaml

from extender.settings import Settings

_HEAD = """# Settings

Written by `python -m docs.generate` from `extender/settings/sections.py`: do not edit it here.

Dovetail reads one YAML file, once, at its start: `dovetail serve --config FILE`, `dovetail control --config FILE`. In
the chart, `config:` has the same keys. `dovetail validate-config FILE` names every mistake, its value, and what is
accepted.

```yaml
apiVersion: dovetail.dev/v1alpha1
kind: DovetailConfiguration
queues:
  - {name: research, weight: 3, minimumShare: 0.25}
```
"""

_TEXTS: dict[str, dict[str, str]] = yaml.safe_load((Path(__file__).parent / "settings.yaml").read_text())
_TITLES, _SENTENCES = _TEXTS["sections"], _TEXTS["settings"]


def settings_page() -> str:
    """Return the page. Raises KeyError where a setting has no sentence, ValueError where a sentence has no setting."""
    sections: dict[str, list[str]] = {}
    used = set()
    for path, default, accepted in _keys(Settings, ""):
        used.add(path)
        section = path.split(".")[0].removesuffix("[]") if path.split(".")[0].removesuffix("[]") in _TITLES else ""
        sections.setdefault(section, []).append(f"| `{path}` | {default} | {accepted} | {_SENTENCES[path]} |")
    if unused := _SENTENCES.keys() - used:
        raise ValueError(f"no such setting: {', '.join(sorted(unused))}")
    parts = [_HEAD]
    for name in ("", *_TITLES):
        title = f"## `{name}`\n\n{_TITLES[name]}" if name else "## At the top"
        table = "\n".join(["| key | default | accepted | what it does |", "|---|---|---|---|", *sections[name]])
        parts.append(f"{title}\n\n{table}\n")
    return "\n".join(parts)


def _keys(section: type[msgspec.Struct], prefix: str) -> Iterator[tuple[str, str, str]]:
    """Yield path, default and accepted values of each setting of a section, depth first."""
    types = get_type_hints(section, include_extras=True)
    for field in msgspec.structs.fields(section):
        path, kind = f"{prefix}{field.encode_name}", types[field.name]
        if path in ("apiVersion", "kind", "cluster.capacities"):
            if path == "cluster.capacities":
                yield path, "`[]`", "a list"
        elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield from _keys(kind, f"{path}.")
        elif path == "queues":
            yield from _keys(get_args(kind)[0], "queues[].")
        else:
            yield path, _default(field), _accepted(kind)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    if field.default is msgspec.NODEFAULT:
        return "`{}`"
    value: Any = list(field.default) if isinstance(field.default, tuple) else field.default
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _accepted(kind: object) -> str:
    """Return what a setting of this type accepts."""
    if get_origin(kind) is Literal:
        return ", ".join(f"`{word}`" for word in get_args(kind))
    if get_origin(kind) is tuple:
        return "a list"
    if get_origin(kind) is UnionType:
        return ", ".join(dict.fromkeys(_accepted(member) for member in get_args(kind)))
    if get_origin(kind) is not Annotated:
        return {str: "a string", int: "a whole number", float: "a number", bool: "`true`, `false`"}.get(
            kind, "see the text"
        )  # type: ignore[call-overload, no-any-return]
    base, meta = get_args(kind)
    if base is str:
        return "a string"
    low = f"{meta.ge:,.12g} to" if meta.ge is not None else f"above {meta.gt:g}, to"
    return f"{low} {meta.le:,.12g}" if meta.le is not None else f"{low} below {meta.lt:g}"
