"""Films and sliders: what is stored, what moves in a kernel, and what is refused."""

import base64
import io
import json
import re
import sys

import matplotlib.pyplot as plt
import pytest
from PIL import Image

from grpo_course.classroom import moving, record
from grpo_course.classroom.moving import play, slide

DATA = re.compile(r"\)\((\{.*\})\);</script>$", re.DOTALL)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture
def shown(monkeypatch):
    """What is displayed: a list of data and metadata."""
    plt.close("all")  # of tests before
    found = []

    def display(data, raw=False, metadata=None):
        found.append((data, metadata))

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(moving, "shell", object)
    return found


def bars(height=1, width=0.5):
    _, ax = plt.subplots(figsize=(2, 1.5))
    ax.bar(["a"], [height], width)
    return f"The bar is {height} high & <{width}> wide."


def data_of(html):
    return json.loads(DATA.search(html).group(1).replace("<\\/", "</"))


def pixels(address):
    png = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    return Image.open(io.BytesIO(png)).convert("RGB").tobytes()


def test_a_film_has_a_still_a_text_and_a_frame_for_each_step(shown):
    play(bars, "What grows?", height=[1, 2, 3])
    ((data, metadata),) = shown
    html = data["text/html"]
    film = data_of(html)
    assert len({pixels(frame) for frame in film["frames"]}) == 3
    assert film["knobs"] == [{"name": "height", "values": ["1", "2", "3"]}]
    assert (film["first"], film["film"]) == (0, True)
    assert data["text/plain"] == "What grows?\nThe bar is 3 high & <0.5> wide."
    assert metadata["image/png"]["alt"] == film["alts"][2] == "Plot: bars: a at 3."
    assert "What grows?" in html and "3 high &amp; &lt;0.5&gt; wide" in html
    png = base64.b64decode(data["image/png"])
    assert png.startswith(b"\x89PNG") and data["image/png"] in html
    assert plt.get_fignums() == []


def test_in_plain_python_a_film_is_its_text(capsys):
    play(bars, "What grows?", height=[1, 2])
    assert capsys.readouterr().out == "What grows?\nThe bar is 2 high & <0.5> wide.\n"


def test_showing_it_again_gives_the_same_bytes_and_fetches_nothing(shown):
    """It begins at its first frame, whatever its still is."""
    for _ in range(2):
        play(bars, still=1, height=[1, 2])
    assert shown[0] == shown[1]
    data, metadata = shown[0]
    assert metadata["image/png"]["alt"] == "Plot: bars: a at 1."
    html = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", data["text/html"])
    assert "http" not in html and " id=" not in html and "url(" not in html


def test_no_sentence_ends_the_script(shown):
    def draw(k):
        bars(k + 1)
        return "</script><b>"

    play(draw, k=[0, 1])
    html = shown[0][0]["text/html"]
    assert html.count("</script>") == 1
    assert data_of(html)["told"] == ["</script><b>"] * 2


def test_where_nobody_sits_a_slider_is_stored_as_frames_in_order(shown):
    slide("How high?", bars, {"height": 2}, height=[1, 2], width=[0.2, 0.4, 0.6])
    ((data, _),) = shown
    film = data_of(data["text/html"])
    assert film["told"][5] == "The bar is 2 high & <0.6> wide."
    assert film["first"] == 3 and not film["film"]
    assert "interactive" not in str(data)


def test_a_learner_moves_a_slider_and_the_picture_is_drawn_anew(monkeypatch, shown):
    drawn = []

    def draw(mu):
        drawn.append(mu)
        return bars(mu)

    made = []
    import ipywidgets

    real = ipywidgets.SelectionSlider

    def note(**options):
        made.append(real(**options))
        return made[-1]

    monkeypatch.setattr(ipywidgets, "SelectionSlider", note)
    monkeypatch.delattr(ipywidgets.Widget, "_repr_mimebundle_", raising=False)  # 7
    monkeypatch.setattr(record, "learner_is_here", lambda: True)
    slide("How high?", draw, mu=[1, 4, 10])
    assert drawn == [1]
    assert made[0].description == "μ"
    made[0].value = 10
    assert drawn == [1, 10]
    (data,) = (each for each, _ in shown if isinstance(each, dict))
    view = data["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] and view["version_major"] == 2
    # Elsewhere, and when the notebook is opened again:
    assert data["text/plain"] == "How high?\nThe bar is 1 high & <0.5> wide."
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")


def test_a_learner_without_widgets_moves_through_frames(monkeypatch, shown):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr(record, "learner_is_here", lambda: True)
    slide("How high?", bars, height=[1, 2])
    ((data, _),) = shown
    assert len(data_of(data["text/html"])["frames"]) == 2


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: play(bars), "a film has one"),
        (lambda: play(bars, height=range(1, 99)), "98 frames"),
        (lambda: play(bars, still=4, height=[1, 2]), "still=4 is none"),
        (lambda: slide("Why?", bars, height=[1]), "1 frames"),
        (lambda: slide(" ", bars, height=[1, 2]), "needs a question"),
        (
            lambda: slide("Why?", bars, {"depth": 1}, height=[1, 2]),
            "depth cannot start",
        ),
    ],
)
def test_a_bad_call_is_told_the_cure(call, words):
    with pytest.raises(ValueError, match=words):
        call()
