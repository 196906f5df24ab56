"""What can be wrong in the laboratory alone; `extender/errors.py` has the rest."""

from importlib.util import find_spec

from extender.errors import DovetailError


class ControlPlaneError(DovetailError):
    """A local control plane could not be built, started or used."""


class SpecError(DovetailError):
    """What names a workload or machines cannot be understood."""


class MissingExtra(DovetailError):
    """A library is missing that only trying out and measuring need."""

    @classmethod
    def unless_installed(cls, *modules: str) -> None:
        """Raise if one of the modules is missing, with the command that installs it."""
        for module in modules:
            if find_spec(module) is None:
                raise cls(f"{module} is missing; run `make setup` in the checkout, or there: pip install '.[lab]'")
