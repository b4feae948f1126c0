"""The website, the first pages, the decks of `teaching`, and the file for GitHub."""

import importlib
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat import v4

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
ENDS = (install.OLDEST_PYTHON, install.NEWEST_PYTHON)


def picture(alt, **more):
    told = {"image/png": {"alt": alt, **more}}
    return v4.new_output("display_data", data={"image/png": "aGk="}, metadata=told)


def test_a_page_folds_what_a_notebook_hides_and_each_picture_has_a_cell_of_its_own(
    make,
):
    stream = v4.new_output("stream", text="words")
    plot = make.code("plot()", "t")
    plot.outputs = [stream, picture("a"), stream, picture("b", width=761), stream]
    ask = make.code('guess = predict("Which?", "up", "down")', "predict")
    cells = [make.code("import torch\n\nsetup(seed=0)"), ask, make.code("g = guess")]
    notebook = make.notebook(*cells, make.code("guess.reveal(1)"), plot, make.text())
    close(notebook)
    site.prepare(notebook)
    tagged = [cell["metadata"].get("tags", []) for cell in notebook["cells"]]
    folded = [["hide-input"], ["predict"], ["hide-output"], ["hide-output"]]
    assert tagged == [*folded, ["t"], ["t", "remove-input"], []]
    first, second = notebook["cells"][4:6]
    assert first["metadata"]["mystnb"] == {"image": {"alt": "a"}}
    assert second["metadata"]["mystnb"] == {"image": {"alt": "b", "width": "761px"}}
    assert first["outputs"] + second["outputs"] == plot.outputs
    assert first["id"] != second["id"]


def test_every_page_links_to_what_the_site_has_and_a_fork_s_name_the_fork(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(links, "origin", lambda root: "https://github.com/ada/course")
    monkeypatch.setattr(site, "mathjax", lambda: Path(__file__))
    site.collect(ROOT, tmp_path / "source")
    readme = (tmp_path / "source" / "README.md").read_text(encoding="utf-8")
    assert "`git clone --depth 1 https://github.com/ada/course grpo" in readme
    book = (tmp_path / "source" / "notebooks" / "05_kl.ipynb").read_text("utf-8")
    assert "/github/ada/course/blob/main/notebooks/05_kl.ipynb" in book
    for page in (tmp_path / "source").glob("*.md"):
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize(
    ("remote", "place"),
    [
        ("https://github.com/ada/grpo.git", "ada/grpo"),
        ("git@github.com:ada/grpo-course.git", "ada/grpo-course"),
        ("https://ada:token@github.com/ada/grpo", "ada/grpo"),
        ("https://gitlab.com/github.com/grpo", ""),
        ("", ""),
    ],
)
def test_links_lead_where_a_clone_came_from_or_are_not_there(
    tmp_path, make, remote, place
):
    """Not to a repository that the unpacked course lies in."""
    inside = tmp_path / "course"
    inside.mkdir()
    for folder in (tmp_path, inside):
        (folder / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    if remote:
        subprocess.run([*git, "remote", "add", "origin", remote], check=True)
    home = links.home(tmp_path)
    assert home == ("https://github.com/" + place) * bool(place)
    assert links.home(inside) == ""
    notebook = make.notebook(make.text("# 5. KL"), make.code())
    links.add(notebook, "05_kl", "https://github.com/stored/course")
    links.settle(notebook, "05_kl", tmp_path)
    told, count = notebook.cells[0].source, notebook.cells[1].execution_count
    assert "stored" not in told and "token" not in told and count == 1
    assert len(notebook.cells) == 2, "no cell for Colab"
    assert ("Open it in" in told) == bool(place)
    if place:
        assert f"github/{place}/blob/main/notebooks/05_kl.ipynb" in told
        site = place.replace("/", ".github.io/")
        assert f"https://{site}/notebooks/05_kl.html" in told


def test_one_command_sets_the_address_everywhere_and_a_second_one_moves_it(
    tmp_path, make, capsys
):
    for name in ("notebooks", "teaching"):
        (tmp_path / name).mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    readme = re.sub(r"\| notebook \|(.*\n)+?\n", "", README)  # without its table
    (tmp_path / "README.md").write_text(readme, encoding="utf-8")
    last = "Go on at your own desk, from the course's folder: `python3 -m grpo_course`."
    books = {"notebooks/01_a": "# A", "teaching/hour": f"# Hour\n\n{last}"}
    for name, source in books.items():
        book = make.notebook(make.text(source), make.code())
        (tmp_path / f"{name}.ipynb").write_text(nbformat.writes(book) + "\n")
    paths = [tmp_path / "README.md", tmp_path / "pyproject.toml"]
    paths += [tmp_path / f"{name}.ipynb" for name in books]

    def texts(*arguments):
        assert save.main(["--form-only", *arguments], tmp_path) == 0
        return [path.read_text(encoding="utf-8") for path in paths]

    before = texts()
    assert not any("github.com/" in text for text in before)
    for place in ("ada/grpo", "bob/course"):
        after = texts("--address", f"https://github.com/{place}.git")
        assert all(f"github.com/{place}" in text.lower() for text in after[:2])
        assert f"from [github.com/{place}](https://github.com/{place}): " in after[3]
        assert f"github/{place}/blob" in after[2] and "google.colab" in after[2]
        told = re.search("`git clone [^`]*`", after[0])[0]
        assert told == f"`git clone --depth 1 https://github.com/{place} grpo-course`"
        assert tomllib.loads(after[1])["project"]["urls"].keys() == {"Repository"}
        assert texts() == after
    assert "ada/grpo" not in "".join(after)
    for wrong in ("", "https://example.org/ada/grpo", "ada"):
        with pytest.raises(SystemExit):
            texts("--address", wrong)
        assert "--address must be like" in capsys.readouterr().err


def test_every_deck_ends_with_a_place_for_the_address_and_nothing_leads_nowhere():
    for path in (ROOT / "teaching").glob("*.ipynb"):
        deck = read(path)
        links.close(deck, "https://github.com/ada/grpo")
        assert nbformat.writes(deck).count("[github.com/ada/grpo]") == 1, path.name
    assert "github.com/ada/grpo " in links.named(README, "https://github.com/ada/grpo")
    for path in (*ROOT.glob("*.md"), *ROOT.glob("*/*.ipynb")):
        text = path.read_text(encoding="utf-8")
        assert not re.search("/OWNER/|ADDRESS_OF_THIS", text), path.name


# The first pages


def test_the_first_pages_say_what_is_so():
    """Hours, bugs, what the language model came to; pictures, notebooks."""
    lengths = {name[:2]: save.minutes(book) for name, book in BOOKS.items()}
    idea = sum(lengths["00"]) + lengths["01"][0]
    loop = sum(sum(lengths[f"{number:02d}"]) for number in range(8))
    hours = [round(m / 60) for m in (idea, loop, sum(map(sum, lengths.values())))]
    told = r"\*\*Time:\*\* (\d+) hour for the idea, (\d+) for the whole loop, (\d+) for"
    start, end = (100 * shares(read_record(), FIRST, at).mean() for at in (0, 8))
    for page, what in ((README, "ones"), (INDEX, "problems")):
        assert [int(each) for each in re.search(told, page).groups()] == hours
        assert f"[{len(DEFECTS)} bugs found in public code]" in page
        learned = f"{start:.0f} % to {end:.0f} % of new {what} right in eight"
        assert learned in page
    names = [f"images/{path.name}" for path in (ROOT / "images").glob("*")]
    names += [f"(notebooks/{name}.ipynb)" for name in BOOKS]
    assert [name for name in names if name not in README] == []


def test_the_first_pages_start_with_one_command_and_name_the_pythons():
    start = README.split("\n## Start\n")[1].split("\n## ")[0]
    assert start.split("```")[1].strip() == "python3 -m grpo_course lab"
    pythons = "Python {}.{} to {}.{}".format(*ENDS[0], *ENDS[1])
    assert pythons in start
    assert pythons in (ROOT / "INSTALL.md").read_text(encoding="utf-8")
    for page in ROOT.glob("*.md"):  # on a Mac, zsh takes a # that is pasted for a word
        blocks = page.read_text(encoding="utf-8").split("```")[1::2]
        shell = [each for each in blocks if not each.startswith("python")]
        assert " # " not in "".join(shell), page.name


def test_a_command_has_a_module_and_extras_that_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for name, (place, extras, _) in command_line.COMMANDS.items():
        module, _, function = place.partition(":")
        home = "" if module.startswith("tools.") else "grpo_course."
        loaded = importlib.import_module(f"{home}{module}")
        assert callable(getattr(loaded, function or "main"))
        assert {*extras} <= {*project["project"]["optional-dependencies"]}
        assert f"  {name} " in command_line.usage()


# The decks

EXERCISE = re.compile(
    r"\*\*Exercise ([\d.]+)\*\*.*Open `(\w+)`[^`]*```python\n(def \w+)"
)
FETCHES = re.compile(
    r"""(?:<(?:script|link|img)[^>]*(?:src|href)=|@import )["']?http"""
)
TIMED = re.compile(r"\*([\d.]+) min, from (\d+:\d\d½?)\.\*")


@pytest.mark.slow
@pytest.mark.parametrize("name, length", [("hour", 60), ("half_day", 210)])
def test_a_deck_is_stored_told_and_exported_whole(name, length):
    """As every notebook; a note for each slide, with its minutes; without network."""
    path = ROOT / "teaching" / f"{name}.ipynb"
    deck, minutes = read(path), 0.0
    kinds = [cell.metadata.slideshow["slide_type"] for cell in deck.cells]
    notes = [c.source for c, k in zip(deck.cells, kinds, strict=True) if k == "notes"]
    assert not stored(deck) and notes
    assert len(notes) == sum(kind in ("slide", "subslide") for kind in kinds)
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
    assert "learn_one" not in page  # its cell is hidden


def test_an_exercise_of_the_half_day_is_in_the_notebook_it_names():
    deck = read(ROOT / "teaching" / "half_day.ipynb")
    found = EXERCISE.findall("\n".join(cell.source for cell in deck.cells))
    assert len(found) == 7
    for number, name, function in found:
        three = triples(BOOKS[name].cells)
        stubs = [stub.source for task, stub, _ in three if number in task.source]
        assert function in "".join(stubs), f"{number} of {name} is another"


# GitHub


def test_github_tests_three_systems_and_all_pythons_before_it_publishes(tmp_path):
    workflow = (ROOT / ".github/workflows/course.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(workflow)["jobs"]
    matrix = jobs["elsewhere"]["strategy"]["matrix"]["include"]
    systems = {each["system"].split("-")[0] for each in matrix}
    assert systems == {"ubuntu", "macos", "windows"}
    named = {f"{major}.{minor}" for major, minor in ENDS}
    assert named < {each["python"] for each in matrix}
    for name in ("site", "binder", "release"):
        assert {"test", "elsewhere"} <= {*jobs[name]["needs"]}
    assert "browser" in jobs["site"]["needs"]
    for path in re.findall(r"notebooks/\w+\.ipynb", workflow):
        assert (ROOT / path).exists()
    names = re.findall(r"python -m grpo_course ([\w-]+)", workflow)
    assert {"test", "test-browser", "site"} <= {*names} <= {*command_line.COMMANDS}
    ends = jobs["binder"]["steps"][0]["run"].splitlines()[-1]
    for phase, status in [("ready", 0), ("built", 0), ("failed", 1)]:
        told = f'data: {{"phase": "building"}}\n\ndata: {{"phase": "{phase}"}}\n'
        (tmp_path / "build.log").write_text(told, encoding="utf-8")
        assert subprocess.run(["bash", "-ec", ends], cwd=tmp_path).returncode == status
