"""Detection of a notebook's kernel."""

from __future__ import annotations

import sys
from typing import Any


def shows_html() -> bool:
    """Whether this process is the kernel of a notebook (Jupyter, VS Code, Colab, Kaggle) and not of a terminal.

    IPython is not imported here: in a notebook it is already imported.
    """
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)
