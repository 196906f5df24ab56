"""Words that all messages share."""


def many(number: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def visible(text: str) -> str:
    """Return a text in which nothing but letters reaches the terminal: users write annotations, and others read them.

    What would break the line is a space, what else is not printable its escape.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else " " if letter.isspace() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def visible_lines(text: str) -> str:
    """Return a text of several lines, each as `visible` has it."""
    return "\n".join(map(visible, text.split("\n")))
