"""What the running Python has installed. Standard library only."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

COURSE = "grpo-course"


def from_checkout(root: Path) -> bool:
    """Whether the course is installed, editable, from this very checkout."""
    # A checkout's own .egg-info is found too; only an install has direct_url.json.
    for distribution in metadata.distributions(name=COURSE):
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        editable = origin.get("dir_info", {}).get("editable", False)
        folder = Path(url2pathname(urlparse(origin.get("url", "")).path))
        if editable and folder.resolve() == root.resolve():
            return True
    return False


def missing_packages(extras: tuple[str, ...]) -> list[str]:
    """The course's direct dependencies that are not installed."""
    requirements = metadata.distribution(COURSE).requires or []
    names = [name_if_wanted(line, extras) for line in requirements]
    return [name for name in names if name and not is_installed(name)]


def name_if_wanted(requirement: str, extras: tuple[str, ...]) -> str:
    """The package a requirement names; empty if it is of an extra not asked for."""
    extra = re.search(r"""extra\s*==\s*['"]([^'"]+)['"]""", requirement)
    if extra and extra.group(1) not in extras:
        return ""
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]


def is_installed(name: str) -> bool:
    """Whether a package of this name is installed."""
    return any(True for _ in metadata.distributions(name=name))
