"""environment.yml, pyproject.toml and constraints.txt cannot drift apart."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from grpo_course import install

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["optional-dependencies"]


def pins(file="constraints.txt"):
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    return {normal(name): version for name, version in (x.split("==") for x in lines)}


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement_name(requirement):
    return normal(re.match(r"[\w.-]+", requirement).group())


def pip_lines():
    (section,) = [x["pip"] for x in CONDA["dependencies"] if isinstance(x, dict)]
    return section


def test_conda_has_python_and_pip_and_no_other_package():
    assert set(CONDA) == {"name", "channels", "dependencies"}
    packages = [x for x in CONDA["dependencies"] if isinstance(x, str)]
    assert [re.split("=", package)[0] for package in packages] == ["python", "pip"]


def test_conda_python_is_exact_and_allowed():
    python = CONDA["dependencies"][0]
    assert re.fullmatch(r"python=3\.\d+", python), "Binder reads only python=3.N"
    minor = tuple(map(int, python.split("=")[1].split(".")))
    assert install.OLDEST_PYTHON <= minor <= install.NEWEST_PYTHON


def test_the_package_admits_the_tested_pythons_and_no_older_one():
    admitted = SpecifierSet(PROJECT["requires-python"])
    assert all(admitted.contains(python) for python in patches())
    major, minor = install.OLDEST_PYTHON
    assert not admitted.contains(f"{major}.{minor - 1}.99")


def test_conda_installs_the_course_with_its_pins_and_its_extras():
    index, constraints, course = pip_lines()
    assert index == f"--extra-index-url {install.CPU_INDEX}"
    assert constraints == "-c constraints.txt"
    extras = re.fullmatch(r"-e \.\[([\w,]+)\]", course).group(1).split(",")
    assert set(extras) <= set(EXTRAS)


def test_every_dependency_is_pinned():
    requirements = [*PROJECT["dependencies"], *(x for e in EXTRAS.values() for x in e)]
    missing = {requirement_name(line) for line in requirements} - set(pins())
    assert not missing, f"add {missing} to constraints.txt"


def test_pins_are_exact_and_torch_leaves_the_build_open():
    versions = pins()
    assert versions.pop("torch") == "2.13.*"
    assert [name for name, version in versions.items() if "*" in version] == []


def test_every_floor_is_a_version_that_is_tried():
    tried = pins() | pins("colab-constraints.txt")
    lines = {requirement_name(line): line for line in PROJECT["dependencies"]}
    torch, series = lines.pop("torch"), tried["torch"].removesuffix(".*")
    assert torch == f"torch>={series},<2.14"
    assert [*lines.values()] == [f"{name}>={tried[name]}" for name in lines]


def test_what_is_installed_is_what_is_pinned():
    installed = {normal(d.name): d.version for d in metadata.distributions()}
    torch_series = pins()["torch"].removesuffix("*")
    assert installed["torch"].startswith(torch_series)
    other = {
        name: (version, installed[name])
        for name, version in pins().items()
        if name in installed and name != "torch" and installed[name] != version
    }
    assert not other, f"pinned, installed: {other}. Install with -c constraints.txt."


def patches():
    """3.11.0 and not only the latest 3.11: Debian 12 has 3.11.2."""
    (major, first), (_, last) = install.OLDEST_PYTHON, install.NEWEST_PYTHON
    minors = range(first, last + 1)
    return [f"{major}.{minor}.{patch}" for minor in minors for patch in range(16)]


def refusals(needs, python):
    """The packages whose `Requires-Python` does not admit a version of Python."""
    return {
        name: need
        for name, need in needs.items()
        if not SpecifierSet(need or "").contains(python)
    }


NEEDS = {
    name: each.metadata["Requires-Python"]
    for each in metadata.distributions()
    if (name := normal(each.name)) in pins()
}


@pytest.mark.parametrize("python", patches())
def test_every_pin_admits_every_patch_of_every_python(python):
    assert len(NEEDS) > 100
    refused = refusals(NEEDS, python)
    assert not refused, f"pin versions that run on Python {python}"


def test_a_pin_that_needs_a_later_patch_is_seen():
    needs = {"soupsieve": ">=3.11.5", "torch": ">=3.10", "six": None}
    assert refusals(needs, "3.11.2") == {"soupsieve": ">=3.11.5"}
    assert refusals(needs, "3.12.0") == {}
    assert refusals({"networkx": ">=3.11,!=3.14.1"}, "3.14.1") != {}
