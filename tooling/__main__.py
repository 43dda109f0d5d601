"""Runs the command line as `python -m tooling`."""

import sys

from tooling.cli import main

sys.exit(main())
