"""Each line of the log is of one form, whoever wrote it."""

import json
import subprocess
import sys

PROGRAM = """
import logging
import structlog
from extender.app.logs import configure_logs
from extender.settings.sections import LogSettings
configure_logs(LogSettings())
structlog.get_logger().info("ours", node="n1")
logging.getLogger("waitress.queue").warning("Task queue depth is %d", 1)
logging.getLogger("waitress.queue").info("nobody asked")
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("waitress").exception("theirs")
"""


def test_what_libraries_log_is_a_line_like_all_others():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in run.stderr.splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [
        ("ours", "info"),
        ("Task queue depth is 1", "warning"),
        ("theirs", "error"),
    ]
    assert lines[1]["logger"] == "waitress.queue"
    assert "ZeroDivisionError" in lines[2]["exception"]
