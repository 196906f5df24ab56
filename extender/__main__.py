"""`python -m extender` is `dovetail`."""

import sys


def main() -> None:
    """Run the command; Ctrl-C ends in one line also while its modules are still being imported."""
    try:
        from extender.cli import main as run
    except KeyboardInterrupt:
        sys.exit("Aborted!")  # as click says it later
    run()


if __name__ == "__main__":
    main()
