"""`python -m pycobre` is the command `pycobre`."""

import sys

from pycobre.app.cli import main

sys.exit(main())
