"""`python -m extender` is `dovetail`."""

from extender.cli import main

main()
