"""The settings file: one strict YAML document, read once. A wrong key or value is named with what is accepted."""

from extender.settings.reading import defaults, document_of, load, parse, read, text_of, yaml_mistake
from extender.settings.sections import LogSettings, ServerSettings, Settings

__all__ = [
    "LogSettings",
    "ServerSettings",
    "Settings",
    "defaults",
    "document_of",
    "load",
    "parse",
    "read",
    "text_of",
    "yaml_mistake",
]
