"""Sphinx settings. Build with `sphinx-build -W --keep-going -q docs docs/_build`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from docstrings import setup_docstrings

import pycobre

project = "pycobre"
author = "The pycobre authors"
copyright = "The pycobre authors"
release = version = pycobre.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"pycobre {release}"

default_role = "code"
add_module_names = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
myst_heading_anchors = 3
# Other projects' documentation is not looked up: the build needs no network.
nitpicky = False


def setup(app):
    setup_docstrings(app)
