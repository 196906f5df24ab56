"""Says in words what is wrong with a line: the field, its value, and what is accepted there."""

import json
import math
import re
from typing import Any, get_args, get_type_hints

import msgspec

_LONGEST_SHOWN = 100
"""How many characters of a name an error shows."""

_PATH = re.compile(r"(.*) - at (`key` in )?`\$\.?(.*)`")
_ANY_KEY = "[...]"
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_MISSING = re.compile(r"Object missing required field `(.*)`")
_EXPECTED = re.compile(r"Expected `([^`]+)`(?:, got `\w+`)?( of length)?(?: (>=|<=) (\S+))?")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_UNREAD = object()
_PARTS = {"str": "characters", "array": "items", "object": "keys"}


def shown(name: str) -> str:
    """Return a name as an error shows it: a long one is cut."""
    return name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}..."


def not_text(text: bytes) -> str:
    """Return in words where a text stops to be UTF-8, "" where it is."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"not UTF-8 text, from byte {error.start} on"
    return ""


def decoded(line: bytes) -> Any:  # noqa: ANN401 - whatever JSON says
    """Return what a line says; `_UNREAD` where it cannot be read to its end."""
    try:
        return json.loads(line, parse_int=_number)
    except (ValueError, RecursionError):
        return _UNREAD


def _number(digits: str) -> float:
    """Return a whole number as what it is; a very long one as a float."""
    return int(digits) if len(digits) < _LONGEST_SHOWN else float(digits)


def mistake(
    error: msgspec.ValidationError,
    kind: type[msgspec.Struct],
    given: object = None,
    whole: str = "one JSON object on each line",
) -> str:
    """Return a mistake in words: the field, what is `given` there, and what is accepted, or that `whole` is."""
    path = _PATH.fullmatch(str(error))
    text, key, field = (path[1], path[2], path[3]) if path else (str(error), None, "")
    if field.endswith(_ANY_KEY):
        field = _with_key(kind, field.removesuffix(_ANY_KEY), given)
    if unknown := _UNKNOWN.fullmatch(text):
        accepted = ", ".join(_fields_at(kind, field))
        return f"field {_joined(field, unknown[1])}: there is no such field; accepted: {accepted}"
    if missing := _MISSING.fullmatch(text):
        return f"field {_joined(field, missing[1])}: it is missing; needed: {', '.join(_needed_at(kind, field))}"
    value = "one of its keys" if key else _value(_at(given, field))
    if not field and text.startswith("Expected"):  # the line itself is no object
        accepted = f"{whole}, with {', '.join(_fields_at(kind, field))}"
    elif text.startswith("Invalid enum value"):
        accepted = ", ".join(repr(choice) for choice in _choices(kind, field))
    elif text == "Number out of range":
        accepted = "a finite number"
    elif expected := _EXPECTED.fullmatch(text):
        accepted = _accepted(expected)
    else:
        return f"field {field}: {text}" if field else text
    return f"{f'field {field}: ' if field else ''}{value}{'; ' if value else ''}accepted: {accepted}"


def _accepted(expected: re.Match[str]) -> str:
    """Return in words what msgspec expects: `float` >= 0.001 is a number, 0.001 or more."""
    kinds, length, sign, bound = expected.groups()
    words = " or ".join(_KINDS.get(kind, kind) for kind in kinds.split(" | "))
    if not sign:
        return words
    limit = f"{bound.removesuffix('.0')} or {'more' if sign == '>=' else 'less'}"
    return f"{words} of {limit} {_PARTS[kinds]}" if length else f"{words}, {limit}"


def _value(value: object) -> str:
    """Return a value as a file says it; of lists and objects only what they are; "" for what was not found."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(shown(value))
    if value == [] or value == {}:
        return "an empty list" if value == [] else "an empty object"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return {dict: "an object", type(None): "null"}.get(type(value), "")


def _at(given: object, path: str) -> Any:  # noqa: ANN401 - whatever JSON says
    """Return what lies at a path such as stages[0].demand, `_at` itself where nothing does."""
    try:
        for part in re.findall(r"[^.\[\]]+", path):
            given = given[int(part)] if isinstance(given, list) else given[part]  # type: ignore[index]
    except (LookupError, TypeError, ValueError):
        return _at
    return given


def _with_key(kind: type[msgspec.Struct], path: str, given: object) -> str:
    """Return the path of an object such as stages[0].demand with the first key whose value is not accepted."""
    values = _at(given, path)
    for key, value in values.items() if isinstance(values, dict) else ():
        try:
            msgspec.convert({key: value}, _type_at(kind, path))
        except msgspec.ValidationError:
            return f"{path}.{key}"
        if value == math.inf:
            return f"{path}.{key}"
    return path


def _choices(kind: type[msgspec.Struct], path: str) -> tuple[Any, ...]:
    """Return what is accepted at a path such as stages[0].input.from, which is a Literal."""
    return get_args(_type_at(kind, path))


def _type_at(kind: type[msgspec.Struct], path: str) -> Any:  # noqa: ANN401 - a type, or what annotates one
    """Return the type of the field at a path such as stages[0].demand."""
    parts = re.sub(r"\[[^]]*\]", "", path).rsplit(".", 1)
    above, name = ("", parts[0]) if len(parts) == 1 else parts
    fields = msgspec.structs.fields(_struct_at(kind, above))
    return next(field.type for field in fields if field.encode_name == name)


def _joined(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _fields_at(kind: type[msgspec.Struct], path: str) -> list[str]:
    """Return the fields that are known at a path such as stages[0].input."""
    return [field.encode_name for field in msgspec.structs.fields(_struct_at(kind, path))]


def _needed_at(kind: type[msgspec.Struct], path: str) -> list[str]:
    """Return the fields that must be given at a path such as stages[0].input."""
    return [field.encode_name for field in msgspec.structs.fields(_struct_at(kind, path)) if field.required]


def _struct_at(kind: type[msgspec.Struct], path: str) -> type[msgspec.Struct]:
    """Return what lies at a path such as stages[0].input."""
    for part in filter(None, re.sub(r"\[[^]]*\]", "", path).split(".")):
        names = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
        pending: list[Any] = [get_type_hints(kind)[names[part]]]
        while pending:
            inner = pending.pop()
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                kind = inner
                break
            pending += get_args(inner)
    return kind
