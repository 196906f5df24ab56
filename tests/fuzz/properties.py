"""All properties by name. Each draws whatever it needs from one `Random`, and raises where it does not hold.

A draw has a number; the number alone gives its `Random` and its size, so that it replays anywhere.
"""

from random import Random

from tests.fuzz import books, churn, dags, decoding, orders, requests

_MOST = 8

PROPERTIES = {
    "quantities": decoding.quantities,
    "amounts": decoding.amounts,
    "annotations": decoding.annotations,
    "objects": decoding.objects,
    "wrong-objects": decoding.wrong_objects,
    "ledger": books.ledger,
    "forgotten": books.forgotten,
    "shuffled": books.shuffled,
    "backlog": books.backlog,
    "sound": orders.sound,
    "never-empty": orders.never_empty,
    "priorities": orders.priorities,
    "until-all-have-run": orders.until_all_have_run,
    "names": orders.names,
    "units": orders.units,
    "dags": dags.dags,
    "dags-in-time": dags.dags_in_time,
    "wrong-dags": dags.wrong_dags,
    "calm": churn.calm,
    "reads": churn.reads,
    "churn": churn.churn,
    "requests": requests.requests,
    "sockets": requests.sockets,
}
GROUPS = {
    "decoding": ("quantities", "amounts", "annotations", "objects", "wrong-objects"),
    "books": ("ledger", "forgotten", "shuffled", "backlog"),
    "order": ("sound", "never-empty", "priorities", "until-all-have-run", "names", "units"),
    "graph": ("dags", "dags-in-time", "wrong-dags"),
    "scenes": ("calm", "reads", "churn"),
    "http": ("requests", "sockets"),
}


def size_of(number):
    """Return the size of a draw, 1 to 8: small ones are as frequent as large ones."""
    return 1 + number % _MOST


def draw(name, number):
    """Draw once. Raises Broken, or whatever else goes wrong, where the property does not hold."""
    PROPERTIES[name](Random(f"{name} {number}"), size_of(number))
