"""The pictures of the README are the stored plots of the notebooks."""

from pathlib import Path

from grpo_course.workshop import form, pictures

ROOT = Path(__file__).resolve().parents[2]


def test_every_picture_is_the_plot_that_a_notebook_stores():
    stored = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        stored |= dict(pictures.taken_from(form.read(path)))
    files = {path.name: path.read_bytes() for path in (ROOT / "images").glob("*")}
    assert files == stored, "run `python3 -m grpo_course save`"
    assert files


def test_the_readme_shows_pictures_and_notebooks_that_exist():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "images").glob("*"):
        assert f"images/{path.name}" in readme
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"(notebooks/{path.name})" in readme
