"""`python -m pycobre` is the command `pycobre`."""

import sys

from pycobre.cli import main

sys.exit(main())
