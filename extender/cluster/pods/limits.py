"""How long what users write may be, and how it is told that it is wrong.

The length is checked before anything is parsed, so that no text costs more than its length.
"""

from extender.errors import BadAnnotation, BadQuantity

LONGEST_NUMBER = 64
"""Characters of a quantity, a duration or a count."""

LONGEST_RATES = 1_024
"""Characters of an annotation that declares rates, of which there are four."""

LONGEST_REQUESTS = 16_384
"""Characters of an annotation that says what each container of a pod requested."""

LONGEST_INPUT = 65_536
"""Characters of an annotation that names the nodes of an input, of which there are a thousand at most."""

LONGEST_NAME = 253
"""Characters of a name, as for Kubernetes' own objects."""

_LONGEST_PROBLEM = 300


def require_at_most(most: int, annotation: str, name: str) -> None:
    """Raise BadAnnotation where an annotation is longer than `most` characters."""
    if len(annotation) > most:
        raise BadAnnotation(f"annotation {name}: {len(annotation)} characters; accepted: at most {most}")


def bad_json(name: str, error: Exception, accepted: str) -> BadAnnotation:
    """Return what is wrong with the JSON of an annotation; a BadQuantity says itself what is accepted."""
    more = "" if isinstance(error, BadQuantity) else f"; accepted: {accepted}"
    return BadAnnotation(f"annotation {name}: {error}{more}")


def shortened(problem: str) -> str:
    """Return what is told of a problem, cut where it quotes too much."""
    return problem if len(problem) <= _LONGEST_PROBLEM else f"{problem[: _LONGEST_PROBLEM - 3]}..."
