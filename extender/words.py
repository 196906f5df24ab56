"""Words that all messages share."""


def many(number: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
