"""compose.yaml as Docker reads it: its variables with their defaults, and the override files over it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
DOCKER = ROOT / "docker"
VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


def compose(*names: str, **variables: str) -> dict[str, Any]:
    """The project of these files of docker/, later ones over earlier ones."""
    project: dict[str, Any] = {}
    for name in names:
        text = (DOCKER / name).read_text()
        filled = VARIABLE.sub(lambda found: variables.get(found[1], found[2]), text)
        assert "$" not in filled, f"{name}: a variable without a default"
        project = _merged(project, yaml.safe_load(filled))
    return project


def variables(name: str) -> set[str]:
    """The names of the environment variables that a file reads."""
    return {found[1] for found in VARIABLE.finditer((DOCKER / name).read_text())}


def _merged(below: Any, above: Any) -> Any:
    """Mappings by key; of the lists that the files here override, a command is replaced and there are no others."""
    if isinstance(below, dict) and isinstance(above, dict):
        return below | {key: _merged(below.get(key), value) for key, value in above.items()}
    return above
