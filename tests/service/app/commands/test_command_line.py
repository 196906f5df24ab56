"""What all commands have in common: help, exit codes that are written down, completion, kubectl's options."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from extender.app.commands.laboratory import LABORATORY, laboratory_commands
from extender.cli import cli, main
from tests.reference.command_line import FILE, page


def every(group=cli, path=()):
    """Return all commands of the service with their names, those inside of groups too."""
    for name, command in group.commands.items():
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from every(command, (*path, name))


COMMANDS = dict(every())


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_s_help_states_its_exit_codes(path):
    text = " ".join(CliRunner().invoke(cli, [*path, "--help"]).stdout.split())
    assert "Exit codes: 0: " in text
    assert text.endswith("2: the command line is wrong.")


def test_the_reference_of_the_command_line_is_what_the_commands_say():
    assert FILE.read_text() == page(), "run `python -m tests.reference.command_line`"


def test_what_nobody_knows_ends_with_two():
    for arguments in (["nonsense"], ["queues", "--nonsense"], ["explain", "pod"], ["queues", "-o", "xml"]):
        assert CliRunner().invoke(cli, arguments).exit_code == 2


def test_an_error_is_one_line_and_ends_with_one(tmp_path):
    command = [sys.executable, "-m", "extender", "queues", f"--kubeconfig={tmp_path / 'missing'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"dovetail: {tmp_path / 'missing'} is not a kubeconfig: ")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_an_error_takes_no_control_character_to_the_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["dovetail", "validate-config", "no\x1b[2J\n\x9bfile"])
    with pytest.raises(SystemExit):
        main()
    lines = capsys.readouterr().err.splitlines()
    assert lines == [r"dovetail: cannot read no\x1b[2J", r"\x9bfile: No such file or directory"]


def test_a_file_that_the_system_does_not_even_look_for_is_named(monkeypatch, capsys):
    name = "n" * 300
    monkeypatch.setattr(sys, "argv", ["dovetail", "packing", "report", name])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == f"dovetail: {name}: File name too long\n"


def test_a_user_without_a_home_can_run_commands():
    nobody = "import pwd; pwd.getpwuid = {}.__getitem__; from extender.cli import main; main()"
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "KUBECONFIG")}
    command = [sys.executable, "-c", nobody, "queues"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.stderr.startswith("dovetail: there is no kubeconfig, and this is not a pod of a cluster ")


def test_ctrl_c_while_modules_are_imported_ends_in_one_line():
    code = """if True:
        import runpy, sys
        class Interrupted:
            def find_spec(self, name, *_):
                if name == "click":
                    raise KeyboardInterrupt
        sys.meta_path.insert(0, Interrupted())
        runpy.run_module("extender", run_name="__main__")
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Aborted!\n")


def test_without_standard_input_nothing_is_confirmed():
    command = ["sh", "-c", f"exec {sys.executable} -m extender drain <&-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith("Aborted!\n")


def test_standard_input_that_never_ends_confirms_nothing():
    command = ["sh", "-c", f"ulimit -v 4000000; exec {sys.executable} -m extender drain </dev/zero"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith("Aborted!\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_letters_that_a_terminal_lacks_are_escaped(tmp_path, encoding):
    jobs, machines = tmp_path / "jobs.jsonl", tmp_path / "machines.jsonl"
    jobs.write_text('{"job": "訓練", "stages": [{"name": "準備", "seconds": 9, "demand": {"cpu": 1}}]}\n')
    machines.write_text('{"name": "m", "allocatable": {"cpu": 2, "memory": "4Gi"}}\n')
    command = [sys.executable, "-m", "extender", "graph", str(jobs), f"--machines={machines}"]
    env = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(r"\u8a13\u7df4: 1 stage, ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line_and_ends_with_one():
    command = [sys.executable, "-m", "extender", "completion", "bash"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "No space left" in done.stderr


def test_every_command_that_asks_a_cluster_takes_the_options_that_name_it():
    for path in (("explain", "pod"), ("queues",), ("doctor",), ("drain",), ("locality",)):
        assert {"kubeconfig", "context"} <= {option.name for option in COMMANDS[path].params}
    for path in (("explain", "pod"), ("queues",), ("doctor",), ("locality",)):
        assert "install_namespace" in {option.name for option in COMMANDS[path].params}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_the_command_dovetail(shell):
    text = CliRunner().invoke(cli, ["completion", shell]).stdout
    assert "_DOVETAIL_COMPLETE" in text
    assert "_dovetail_completion" in text


def test_completion_of_a_shell_that_nobody_knows_ends_with_two():
    assert CliRunner().invoke(cli, ["completion", "tcsh"]).exit_code == 2


def test_bash_completes_commands():
    env = {"_DOVETAIL_COMPLETE": "bash_complete", "COMP_WORDS": "dovetail ex", "COMP_CWORD": "1"}
    done = CliRunner().invoke(cli, [], prog_name="dovetail", env=env)
    assert {line.split(",")[1] for line in done.stdout.splitlines()} >= {"explain"}


def test_a_command_of_the_laboratory_that_is_not_here_says_where_it_is(monkeypatch):
    monkeypatch.setattr("extender.app.commands.laboratory.laboratory_commands", dict)
    done = CliRunner().invoke(cli, ["simulate"])
    assert done.exit_code == 2
    assert "'simulate' is a command of the laboratory, which is not here. Run it in a checkout" in done.stderr
    assert "The laboratory (bench, " in " ".join(CliRunner().invoke(cli, ["--help"]).stdout.split())


def test_all_commands_of_the_laboratory_are_known_where_it_is_not_here():
    assert laboratory_commands().keys() <= set(LABORATORY)
