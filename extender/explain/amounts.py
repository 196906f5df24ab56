"""Amounts of resources in words: 1.2 cores, 3.5 GiB, 120 MB/s."""

from extender.cluster.resources import CPU, EPHEMERAL, HUGEPAGES, IO_UNITS, MEMORY, Amounts

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL = ("", "k", "M", "G", "T", "P")


def amount(name: str, value: float) -> str:
    """Return an amount of a dimension with its unit, to three digits."""
    if name == CPU:
        cores = value / 1000
        return f"{_short(cores)} {'core' if cores == 1 else 'cores'}"
    if name in (MEMORY, EPHEMERAL) or name.startswith(HUGEPAGES):
        return _scaled(value, 1024.0, _BINARY)
    if name in IO_UNITS:
        return _scaled(value, 1000.0, tuple(f"{prefix}{IO_UNITS[name]}" for prefix in _DECIMAL))
    return _short(value)


def in_words(amounts: Amounts) -> str:
    """Return amounts with the names of their dimensions, in their order."""
    return ", ".join(f"{name} {amount(name, value)}" for name, value in amounts.items()) or "nothing"


def seconds(value: float) -> str:
    """Return a time in at most two units: 42 s, 3 min 5 s, 2 h 10 min, 3 d 4 h."""
    whole = round(value)
    for unit, name, size, below in ((60, "s", 1, ""), (3_600, "min", 60, "s"), (86_400, "h", 3_600, "min")):
        if whole < unit:
            return _two(whole, size, name, below)
    return _two(whole, 86_400, "d", "h")


def percent(part: float) -> str:
    """Return a part of the whole, in [0, 1], in percent."""
    return f"{100 * part:.1f} %"


def _two(whole: int, size: int, name: str, below: str) -> str:
    smaller = {"s": 1, "min": 60, "h": 3_600}.get(below, 1)
    rest = (whole % size) // smaller
    return f"{whole // size} {name}" + (f" {rest} {below}" if below and rest else "")


def _scaled(value: float, base: float, units: tuple[str, ...]) -> str:
    power = 0
    while value >= base and power < len(units) - 1:
        value, power = value / base, power + 1
    return f"{_short(value)} {units[power]}"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
