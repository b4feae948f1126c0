"""A learner's first look: is everything here that the course needs?"""

from importlib import metadata

from packaging.requirements import Requirement

DISTRIBUTION = "grpo-course"
READY = "ready"
CURE = (
    "start with `python3 -m grpo_course lab` from the course's folder (Windows: `py`)"
)


def check_environment() -> None:
    """Say that all packages are there, or for each that is not, what to do."""
    states = {requirement.name: state(requirement) for requirement in needed()}
    wrong = {name: words for name, words in states.items() if words != READY}
    for name, words in wrong.items():
        print(f"{name:14s} {words}")
    if not wrong:
        print(f"All {len(states)} packages are {READY}.")


def needed() -> list[Requirement]:
    """The course's own requirements, without the optional extras."""
    requirements = metadata.requires(DISTRIBUTION) or []
    return [Requirement(line) for line in requirements if "extra ==" not in line]


def state(requirement: Requirement) -> str:
    """Whether a requirement is met; what to do where it is not."""
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"missing: {CURE}"
    if not requirement.specifier.contains(version):
        return f"version {version}, but the course needs {requirement}: {CURE}"
    return READY
