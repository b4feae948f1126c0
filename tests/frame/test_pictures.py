"""The pictures of the README are the stored plots of the notebooks."""

import io
import re
from pathlib import Path

from PIL import Image

from grpo_course.workshop import form, pictures

ROOT = Path(__file__).resolve().parents[2]
TYPE = re.compile(r'(?:font|label|\b)size"?[=:] ?([\d.]+)(?: if .* else ([\d.]+))?')


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


def test_the_film_of_the_readme_moves_then_rests_and_is_small():
    """It plays a few times and stops, so that nobody has to read beside it."""
    content = (ROOT / "images" / "learning.gif").read_bytes()
    film = Image.open(io.BytesIO(content))
    assert film.n_frames > 8 and 0 < film.info["loop"] <= 3
    assert len(content) < 400_000
    seen = set()
    for place in range(film.n_frames):
        film.seek(place)
        seen.add(film.convert("RGB").tobytes())
    assert len(seen) == film.n_frames


def test_no_type_is_so_small_that_a_room_cannot_read_it():
    """Pictures are set in 12 pt; what does not fit so is at least 10."""
    course = ROOT / "grpo_course"
    plots = [*course.glob("lessons/pictures/*.py"), course / "classroom/plots.py"]
    stated = {path.name: sizes(path) for path in plots}
    assert sum(map(len, stated.values())) > 10
    assert {n: each for n, each in stated.items() if min(each, default=12) < 10} == {}


def sizes(path):
    """The sizes of type that a file states."""
    pairs = TYPE.findall(path.read_text(encoding="utf-8"))
    return [float(size) for each in pairs for size in each if size]
