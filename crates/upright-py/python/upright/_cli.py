"""The command `upright`."""

from __future__ import annotations

import signal
import sys

from . import _upright


def main() -> int:
    """Runs the command line."""
    # Rust does the work, so that Python's own handler would never be asked.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _upright.main(sys.argv[1:])
