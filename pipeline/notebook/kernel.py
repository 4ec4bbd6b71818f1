"""Whether this process is the kernel of a notebook."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["shows_html"]


def shows_html() -> bool:
    """Whether what is displayed goes to a notebook (Jupyter, VS Code, Colab, Kaggle), and not to a terminal.

    IPython is not imported here: in a notebook it is there.
    """
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)
