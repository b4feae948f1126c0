"""A learner's first look: is everything here that the course needs?"""

import re
from importlib import metadata

DISTRIBUTION = "grpo-course"
CURE = "start with `python3 -m grpo_course lab` from the course's folder"


def check_environment() -> None:
    """Print one line for each package that the course needs: ready, or the cure."""
    for requirement in needed():
        print(f"{requirement_name(requirement):14s} {state(requirement)}")


def needed() -> list[str]:
    """The course's own requirements, without the optional extras."""
    requirements = metadata.requires(DISTRIBUTION) or []
    return [line for line in requirements if "extra ==" not in line]


def requirement_name(requirement: str) -> str:
    """The package's name: "torch" for "torch==2.13.*"."""
    return re.match(r"[A-Za-z0-9._-]+", requirement).group()


def state(requirement: str) -> str:
    """Whether a requirement is met; what to do where it is not."""
    from packaging.requirements import Requirement

    try:
        version = metadata.version(requirement_name(requirement))
    except metadata.PackageNotFoundError:
        return f"missing: {CURE}"
    if not Requirement(requirement).specifier.contains(version):
        return f"version {version}, but the course needs {requirement}: {CURE}"
    return "ready"
