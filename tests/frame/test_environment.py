"""environment.yml, pyproject.toml and constraints.txt cannot drift apart."""

import re
import tomllib
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path

import yaml
from packaging.specifiers import SpecifierSet

from grpo_course import install
from tools import links

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
EXTRAS = PROJECT["optional-dependencies"]


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def by_name(requirements):
    return {normal(re.match(r"[\w.-]+", line)[0]): line for line in requirements}


def pins(file="constraints.txt"):
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {normal(name): version for name, version in pairs}


def patches():
    """3.11.0 and not only the latest 3.11: Debian 12 has 3.11.2."""
    (major, first), (_, last) = install.OLDEST_PYTHON, install.NEWEST_PYTHON
    minors = range(first, last + 1)
    return [f"{major}.{minor}.{patch}" for minor in minors for patch in range(16)]


def test_conda_has_a_tested_python_and_pip_with_our_pins_and_no_other_package():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    python, pip, section = conda["dependencies"]
    assert re.fullmatch(r"python=3\.\d+", python), "Binder reads only python=3.N"
    assert python.replace("=", "") in {f"python{p[:-2]}" for p in patches()}
    index, constraints, course = section["pip"]
    assert pip == "pip" and constraints == "-c constraints.txt"
    assert index == f"--extra-index-url {install.CPU_INDEX}"
    extras = re.fullmatch(r"-e \.\[([\w,]+)\]", course)[1].split(",")
    assert set(extras) <= set(EXTRAS)


def test_every_dependency_has_an_exact_pin_and_torch_leaves_the_build_open():
    requirements = [*PROJECT["dependencies"], *(x for e in EXTRAS.values() for x in e)]
    versions = pins()
    assert by_name(requirements).keys() <= versions.keys(), "add it to constraints.txt"
    assert versions.pop("torch") == "2.13.*"
    assert "*" not in "".join(versions.values())


def test_every_floor_is_a_version_that_is_tried():
    tried = pins() | pins("colab-constraints.txt")
    lines = by_name(PROJECT["dependencies"])
    torch, series = lines.pop("torch"), tried["torch"].removesuffix(".*")
    assert torch == f"torch>={series},<2.14"
    assert [*lines.values()] == [f"{name}>={tried[name]}" for name in lines]


def test_colab_s_cell_brings_what_colab_lacks_for_fetch_too():
    """All but JupyterLab, which is not used there; what tyro needs as well."""
    needed = by_name([*PROJECT["dependencies"], *EXTRAS["smollm2"]]).keys()
    needed |= by_name(metadata.requires("tyro")[:1]).keys() | {"typeguard"}
    brought = {*links.LACKING.split()} | pins("colab-constraints.txt").keys()
    assert needed - brought == {"jupyterlab"}


def test_what_is_installed_is_what_is_pinned():
    installed = {normal(d.name): d.version for d in metadata.distributions()}
    other = {
        name: (version, installed[name])
        for name, version in pins().items()
        if not fnmatch(installed.get(name, version), version)
    }
    assert not other, f"pinned, installed: {other}. Install with -c constraints.txt."


def test_the_package_and_every_pin_admit_every_patch_of_the_tested_pythons():
    pinned = pins()
    needs = {
        normal(each.name): SpecifierSet(each.metadata["Requires-Python"] or "")
        for each in metadata.distributions()
        if normal(each.name) in pinned
    }
    needs["the course"] = SpecifierSet(PROJECT["requires-python"])
    refusals = [
        f"{name} on {python}"
        for name, need in needs.items()
        for python in patches()
        if not need.contains(python)
    ]
    assert len(needs) > 100 and not refusals
