"""`dovetail explain`."""

import sys
from dataclasses import replace

import click

from extender.app.commands.options import ANSWERED, asking
from extender.app.inspection.query import Query


@click.group(epilog=ANSWERED)
def explain() -> None:
    """Explain what became of something, and why."""


@explain.command("pod", epilog=ANSWERED)
@click.argument("name", metavar="NAME")
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    help="The pod's namespace. Default: that of the kubeconfig's context, else `default`.",
)
@click.option("--control", default="", metavar="URL", help="Address of `dovetail control`. Default: through its pods.")
@asking()
def explain_pod(query: Query, name: str, namespace: str, control: str) -> None:
    """Explain why a pod waits, or why it went where it went.

    NAME is the pod's name, or NAMESPACE/NAME. Reads the cluster and makes the plan that `dovetail control` would make
    now: queue and shares, position, how the best nodes suit it, and what would have to change. Where pods wait for room
    near their input, or may run on idle resources, `control` is asked for what only it knows.
    """
    from extender.app.inspection import answers

    named, slash, _ = name.partition("/")
    if slash and namespace and named != namespace:
        raise click.UsageError(f"{name} names another namespace than --namespace {namespace}")
    text, complete = answers.explain_pod(replace(query, control=control), name, namespace)
    click.echo(text)
    sys.exit(0 if complete else 1)
