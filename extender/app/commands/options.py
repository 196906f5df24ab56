"""Options that several commands share, and the exit codes that each command's help states."""

import functools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click

from extender.app.inspection.query import Output, Query

FILE = click.Path(dir_okay=False, path_type=Path)
_USER_FILE = Path(os.path.expanduser("~/.kube/config"))  # no such file where nobody knows a home

_Command = Callable[..., None]


class NumberRange(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's signature
        """Return the number. Fails with one line for what is none, and for what is infinite."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def exit_codes(done: str, failed: str) -> str:
    """Return what a command's help says of its exit codes."""
    return f"Exit codes: 0: {done}; 1: {failed}; 2: the command line is wrong."


ANSWERED = exit_codes("answered", "an error, or something could not be read: the first line says what")

settings_file = click.option(
    "--config", type=FILE, help="Settings file (kind: DovetailConfiguration). Default: built-in settings."
)
service_kubeconfig = click.option(
    "--kubeconfig", type=FILE, help="How to reach the API server. Default: the cluster that we run in."
)


def connection(command: _Command) -> _Command:
    """Give a command of the user the options that say which cluster it is about, as kubectl has them."""
    context = click.option(
        "--context", default="", metavar="NAME", help="Context of the kubeconfig. Default: its current one."
    )
    kubeconfig = click.option(
        "--kubeconfig",
        type=FILE,
        envvar="KUBECONFIG",
        default=lambda: _USER_FILE if _USER_FILE.is_file() else None,
        help="How to reach the API server. Default: $KUBECONFIG, ~/.kube/config, the cluster that we run in.",
    )
    return kubeconfig(context(command))


def install_namespace(*also: str) -> Callable[[_Command], _Command]:
    """Return the option that says where Dovetail is installed; `also` are other names of it."""
    return click.option(
        "--install-namespace",
        *also,
        "install_namespace",
        default="",
        metavar="NAME",
        help="Where Dovetail is installed. Default: where its ClusterRoleBindings say.",
    )


def asking(*also: str) -> Callable[[_Command], _Command]:
    """Return a decorator for a command that looks at a cluster: it gets these options as one `query`.

    `also` are other names of --install-namespace.
    """
    where_installed = install_namespace(*also)

    def decorate(command: _Command) -> _Command:
        @functools.wraps(command)
        def with_query(
            *,
            kubeconfig: Path | None,
            context: str,
            install_namespace: str,
            config: Path | None,
            output: Output | None,
            as_json: bool,
            **others: Any,  # noqa: ANN401 - the command's own options
        ) -> None:
            if as_json and output not in (None, "json"):
                raise click.UsageError(f"give either --json or --output {output}")
            query = Query(
                kubeconfig=kubeconfig,
                context=context,
                config=config,
                install_namespace=install_namespace,
                output="json" if as_json else output or "table",
            )
            command(query=query, **others)

        with_options: _Command = with_query
        for option in (
            click.option("--json", "as_json", is_flag=True, help="The same as --output json."),
            click.option(
                "-o",
                "--output",
                type=click.Choice(get_args(Output)),
                help="How to print the answer. wide: nothing is cut or wrapped, and there is more.  [default: table]",
            ),
            click.option("--config", type=FILE, help="Settings file. Default: those of the cluster's Dovetail."),
            where_installed,
            connection,
        ):
            with_options = option(with_options)
        return with_options

    return decorate
