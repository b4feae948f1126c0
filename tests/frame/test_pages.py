"""The website, the first pages, the decks of `teaching`, and the file for GitHub."""

import importlib
import inspect
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from docutils.core import publish_doctree
from nbformat import v4

import grpo_course
from grpo_course import __main__ as command_line
from grpo_course import install
from grpo_course.lessons.finale import FIRST, read_record, shares
from grpo_course.lessons.hunt.defects import DEFECTS
from tools import links, save, site, slides
from tools.notebook import close, read, stored, triples

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
INDEX = (ROOT / "tools" / "site_source" / "index.md").read_text(encoding="utf-8")
BOOKS = {path.stem: read(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)")  # of this repository


def picture(alt, **more):
    return v4.new_output(
        "display_data",
        data={"image/png": "aGk="},
        metadata={"image/png": {"alt": alt, **more}},
    )


def prepared(*cells):
    notebook = v4.new_notebook(cells=list(cells))
    site.prepare(notebook)
    return notebook["cells"]


def test_each_picture_has_a_cell_a_text_and_a_width_of_its_own():
    stream = v4.new_output("stream", text="words")
    outputs = [stream, picture("a"), stream, picture("b", width=761), stream]
    code = v4.new_code_cell("plot()", outputs=outputs, metadata={"tags": ["t"]})
    plain = [v4.new_markdown_cell("a"), v4.new_code_cell("b")]
    first, second, *rest = prepared(code, *plain)
    assert rest == plain
    assert first["metadata"]["mystnb"] == {"image": {"alt": "a"}}
    assert second["metadata"]["mystnb"] == {"image": {"alt": "b", "width": "761px"}}
    assert first["outputs"] + second["outputs"] == outputs
    assert first["id"] != second["id"]
    assert first["metadata"]["tags"] == ["t"]
    assert second["metadata"]["tags"] == ["t", "remove-input"]


def test_imports_are_folded_and_a_guess_has_a_toggle(make):
    ask = make.code('guess = predict("Which?", "up", "down")', "predict")
    cells = [make.code("import torch\n\nsetup(seed=0)"), ask]
    notebook = make.notebook(*cells, make.code("guess.reveal(1)"), make.code())
    close(notebook)
    site.prepare(notebook)
    tagged = [cell["metadata"].get("tags", []) for cell in notebook["cells"]]
    assert tagged == [["hide-input"], ["predict"], ["hide-output"], []]


def test_every_page_links_to_what_the_site_has_and_a_fork_s_name_the_fork(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(links, "origin", lambda root: "ada/course")
    monkeypatch.setattr(site, "mathjax", lambda: Path(__file__))
    site.collect(ROOT, tmp_path / "source")
    readme = (tmp_path / "source" / "README.md").read_text(encoding="utf-8")
    assert "git clone --depth 1 https://github.com/ada/course grpo" in readme
    for page in (tmp_path / "source").glob("*.md"):
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("owner, stays", [("OWNER", False), ("ada", True)])
def test_links_wait_for_an_address(make, owner, stays, tmp_path):
    notebook = make.notebook(make.text("# 5. KL"))
    links.add(notebook, "05_kl", f"https://github.com/{owner}/grpo-course")
    links.bring_home(notebook, tmp_path)
    assert ("Open it in" in notebook["cells"][0]["source"]) == stays


@pytest.mark.parametrize(
    ("remote", "place"),
    [
        ("https://github.com/ada/grpo.git", "ada/grpo"),
        ("git@github.com:ada/grpo-course.git", "ada/grpo-course"),
        ("https://github.com/ada/grpo/", "ada/grpo"),
        ("/srv/grpo.git", "OWNER/course"),  # not on GitHub
        (None, "OWNER/course"),
    ],
)
def test_a_fork_opens_the_fork(tmp_path, remote, place):
    address = '[project.urls]\nRepository = "https://github.com/OWNER/course"\n'
    (tmp_path / "pyproject.toml").write_text(address, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    if remote:
        add = ["git", "remote", "add", "origin", remote]
        subprocess.run(add, cwd=tmp_path, check=True)
    link = "github/{}/blob/main/notebooks/01.ipynb"
    text = links.at_home(link.format("OWNER/course"), tmp_path)
    assert text == link.format(place)
    page = links.at_home(links.pages("OWNER/course"), tmp_path)
    assert page == links.pages(place)


# The page of names


def typeset(text):
    """What a reader sees of plain text, and the complaints of reStructuredText."""
    tree = publish_doctree(site.plain(text), settings_overrides={"report_level": 5})
    complaints = [node.astext() for node in tree.findall() if "problem" in node.tagname]
    complaints += [n.astext() for n in tree.findall() if n.tagname == "system_message"]
    return " ".join(tree.astext().split()), complaints


@pytest.mark.parametrize(
    "text",
    [
        "Rewards [batch trial], x_ and *args, **knobs, |a|, a:: and :b:.",
        "- one\n- two\n1. three\n>>> four\n.. five\n=====",
        "A map:\n\n    one    first\n    two_   second *",
        "Raises ValueError:\n  for a mask\nthat is not 0/1",
    ],
)
def test_a_docstring_is_plain_text(text):
    assert typeset(text) == (" ".join(text.split()), [])


def test_the_page_of_names_has_each_module_and_each_name():
    page = site.names_page(ROOT / "grpo_course")
    for path in (ROOT / "grpo_course").rglob("*.py"):
        if path.stem != "__main__" and (path.parent / "__init__.py").exists():
            told = site.docstring(path)
            assert told and typeset(told)[1] == [], path
            if path != ROOT / "grpo_course" / "__init__.py":
                assert site.plain(told) in page, path
    for name, home in grpo_course.HOMES.items():
        section = page.split(f".. py:module:: {home}\n")[1].split(".. py:module::")[0]
        value = getattr(grpo_course, name)
        kind = "class" if inspect.isclass(value) else "function"
        directive = f"auto{kind}" if callable(value) else "py:data"
        assert f".. {directive}:: {name}\n" in section
        if callable(value):
            assert value.__doc__ and typeset(value.__doc__)[1] == [], name


# The first pages


def test_the_first_pages_say_what_is_so():
    """Hours, bugs, what the language model came to; pictures, notebooks."""
    lengths = {name[:2]: save.minutes(book) for name, book in BOOKS.items()}
    idea = sum(lengths["00"]) + lengths["01"][0]
    loop = sum(sum(lengths[f"{number:02d}"]) for number in range(8))
    hours = [round(m / 60) for m in (idea, loop, sum(map(sum, lengths.values())))]
    told = r"\*\*Time:\*\* (\d+) hour for the idea, (\d+) for the whole loop, (\d+) for"
    for page in (README, INDEX):
        assert [int(each) for each in re.search(told, page).groups()] == hours
        assert f"[{len(DEFECTS)} bugs found in public code]" in page
    start, end = (100 * shares(read_record(), FIRST, at).mean() for at in (0, 8))
    assert f"{start:.0f} % to {end:.0f} % of new ones right in eight" in README
    assert f"{start:.0f} % to {end:.0f} % of new problems right in eight" in INDEX
    for path in (ROOT / "images").glob("*"):
        assert f"images/{path.name}" in README
    assert all(f"(notebooks/{name}.ipynb)" in README for name in BOOKS)


def test_the_first_pages_start_with_one_command_and_name_the_pythons():
    start = README.split("\n## Start\n")[1].split("\n## ")[0]
    first, *_, last = start.split("```")[1].strip().splitlines()
    assert first == f"git clone --depth 1 {links.HERE} grpo-course"
    assert last == "python3 -m grpo_course lab"
    ends = (install.OLDEST_PYTHON, install.NEWEST_PYTHON)
    pythons = "Python {}.{} to {}.{}".format(*ends[0], *ends[1])
    assert pythons in start
    assert pythons in (ROOT / "INSTALL.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_no_command_to_copy_holds_a_comment(page):
    """On a Mac, zsh takes a # that is pasted for an argument."""
    blocks = page.read_text(encoding="utf-8").split("```")[1::2]
    shell = [each for each in blocks if not each.startswith("python")]
    assert not [line for each in shell for line in each.splitlines() if " # " in line]


@pytest.mark.parametrize("name", command_line.COMMANDS)
def test_a_command_has_a_module_and_extras_that_exist(name):
    module, extras, _ = command_line.COMMANDS[name]
    module, _, function = module.partition(":")
    home = "" if module.startswith("tools.") else "grpo_course."
    loaded = importlib.import_module(f"{home}{module}")
    assert callable(getattr(loaded, function or "main"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(extras) <= set(project["project"]["optional-dependencies"])
    assert f"  {name} " in command_line.usage()


# The decks

EXERCISE = re.compile(
    r"\*\*Exercise ([\d.]+)\*\*.*Open `(\w+)`[^`]*```python\n(def \w+)"
)
FETCHES = re.compile(
    r"""(?:<(?:script|link|img)[^>]*(?:src|href)=|@import )["']?http"""
)
TIMED = re.compile(r"\*([\d.]+) min, from (\d+:\d\d½?)\.\*")


def kind(cell):
    return cell.metadata.slideshow["slide_type"]


@pytest.mark.parametrize("name, length", [("hour", 60), ("half_day", 210)])
def test_a_deck_is_stored_told_and_exported_whole(name, length):
    """As every notebook; a note for each slide, with its minutes; without network."""
    path = ROOT / "teaching" / f"{name}.ipynb"
    deck, minutes = read(path), 0.0
    kinds = [*map(kind, deck.cells)]
    assert not stored(deck) and "notes" in kinds
    assert kinds.count("notes") == sum(k in ("slide", "subslide") for k in kinds)
    notes = [cell.source for cell in deck.cells if kind(cell) == "notes"]
    for note in notes[1:-1]:  # but before the first part and after the last
        told, begin = TIMED.match(note).groups()
        clock = f"{int(minutes) // 60}:{int(minutes) % 60:02d}{'½' * (minutes % 1 > 0)}"
        assert begin == clock, note[:40]
        minutes += float(told)
    assert minutes < length
    first = next(c for c in deck.cells if c.cell_type == "code")
    exec(first.source.partition("setup(")[0], {})  # the package has what it imports
    page = slides.exported(deck, path, ROOT)
    assert not FETCHES.search(page) and "Reveal.initialize" in page
    assert page.count('<aside class="notes">') == len(notes)
    assert "learn_one(" not in page


def test_an_exercise_of_the_half_day_is_in_the_notebook_it_names():
    deck = read(ROOT / "teaching" / "half_day.ipynb")
    found = EXERCISE.findall("\n".join(cell.source for cell in deck.cells))
    assert len(found) == 7
    for number, name, function in found:
        three = triples(BOOKS[name].cells)
        stubs = [stub.source for task, stub, _ in three if number in task.source]
        assert function in "".join(stubs), f"{number} of {name} is another"


# GitHub

JOBS = yaml.safe_load((ROOT / ".github/workflows/course.yml").read_text())["jobs"]


def test_github_tests_three_systems_and_all_pythons_before_it_publishes():
    matrix = JOBS["elsewhere"]["strategy"]["matrix"]["include"]
    systems = {each["system"].split("-")[0] for each in matrix}
    assert systems == {"ubuntu", "macos", "windows"}
    ends = (install.OLDEST_PYTHON, install.NEWEST_PYTHON)
    named = {f"{major}.{minor}" for major, minor in ends}
    assert named < {each["python"] for each in matrix}
    for name in ("site", "binder", "release"):
        assert {"test", "elsewhere"} <= {*JOBS[name]["needs"]}
    assert "browser" in JOBS["site"]["needs"]
    calls = [s["run"] for job in JOBS.values() for s in job["steps"] if "run" in s]
    for path in re.findall(r"notebooks/\w+\.ipynb", "\n".join(calls)):
        assert (ROOT / path).exists()
    names = re.findall(r"python -m grpo_course ([\w-]+)", "\n".join(calls))
    assert {"test", "test-browser", "site"} <= {*names} <= {*command_line.COMMANDS}


@pytest.mark.parametrize("phase, status", [("ready", 0), ("built", 0), ("failed", 1)])
def test_a_binder_image_that_failed_is_seen(tmp_path, phase, status):
    (step,) = JOBS["binder"]["steps"]
    ends = step["run"].splitlines()[-1]
    told = f'data: {{"phase": "building"}}\n\ndata: {{"phase": "{phase}"}}\n'
    (tmp_path / "build.log").write_text(told, encoding="utf-8")
    assert subprocess.run(["bash", "-ec", ends], cwd=tmp_path).returncode == status
