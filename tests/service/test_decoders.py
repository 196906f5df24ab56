"""Decoders of JSON are made where a module is imported: by one thread, before others run."""

import ast
from pathlib import Path

import extender

_PLAIN = ("dict", "Mapping", "list")


def test_no_thread_makes_a_decoder_of_a_type_of_ours_while_others_may():
    # Threads that make the first decoder of one type at the same moment end the process (msgspec 0.22).
    late = []
    for path in sorted(Path(extender.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "msgspec.json.decode":
                types = [ast.unparse(word.value) for word in node.keywords if word.arg == "type"]
                late += [f"{path}: {kind}" for kind in types if not kind.startswith(_PLAIN)]
    assert not late
