"""``python3 -m minigraph``: the same as the command ``minigraph``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
