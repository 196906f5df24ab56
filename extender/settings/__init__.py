"""The settings file: one strict YAML document, read once. A wrong key or value is named with what is accepted."""

from extender.settings.reading import defaults, load, parse, read, text_of
from extender.settings.sections import LogSettings, ServerSettings, Settings

__all__ = ["LogSettings", "ServerSettings", "Settings", "defaults", "load", "parse", "read", "text_of"]
