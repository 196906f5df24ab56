"""What the user's commands are asked: which cluster, by which settings, and how to print the answer."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Output = Literal["table", "wide", "json", "yaml"]


@dataclass(frozen=True, slots=True)
class Query:
    """How to reach the cluster, which settings count (None: those of the cluster's Dovetail), and how to answer.

    `context` is one of the kubeconfig, empty: its current one. `install_namespace` is where Dovetail is installed,
    empty: to be found. `control` is the address of `dovetail control`, empty: through its pods.
    """

    kubeconfig: Path | None = None
    context: str = ""
    config: Path | None = None
    install_namespace: str = ""
    control: str = ""
    output: Output = "table"

    @property
    def wide(self) -> bool:
        """Whether nothing is to be cut or wrapped."""
        return self.output == "wide"
