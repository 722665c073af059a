"""`python -m luthier` is the same as `luthier`."""

from luthier.views.cli import main

main()
