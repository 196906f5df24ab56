"""The last checkpoint of a file of `dovetail record`."""

from pathlib import Path

from extender.cluster.recording.lines import Begin, Checkpoint, decoded, lines_in, placed
from extender.errors import TraceError
from lab.packing.moment import ClusterMoment, moment_of


def read_recording(file: Path) -> ClusterMoment:
    """Return the last checkpoint of a recording as a problem.

    A file that ends within a line is read up to there. Raises TraceError, which names the file, the line and what is
    wrong with it.
    """
    last: Checkpoint | None = None
    cut: list[str] = []
    begun = False
    try:
        with file.open("rb") as stream:
            for where, text in placed(lines_in(stream, str(file)), str(file)):
                if begun and not text.endswith(b"\n"):
                    cut = [f"the last line ({where.rpartition(' ')[2]}): the file ends in the middle of it"]
                    break
                line = decoded(text, where)
                begun = begun or isinstance(line, Begin)
                if not begun:
                    raise TraceError(f"{where}: a recording begins with a line of the kind begin")
                last = line if isinstance(line, Checkpoint) else last
    except OSError as error:
        raise TraceError(
            f"{file}: {error.strerror}; accepted: a file of dovetail record, or a trace's folder"
        ) from None
    if last is None:
        raise TraceError("; ".join([f"{file}: there is no checkpoint in it; record until one is written", *cut]))
    return moment_of(last, str(file), cut)
