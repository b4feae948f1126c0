"""`python3 -m claims`: what the notebooks claim, and whether it holds."""

import sys
from pathlib import Path

from claims.ledger import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).parent))
