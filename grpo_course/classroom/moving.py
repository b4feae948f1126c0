"""Pictures that move without a kernel: a film to scrub, or frames behind sliders.

The output is HTML that carries its frames and a small script, beside a still picture
with an alternative text. GitHub, print and a notebook that is not trusted drop scripts
and keep the still. Nothing in it is random and nothing is fetched, so that it can be
stored and compared.
"""

import base64
import io
import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

from grpo_course.classroom import record
from grpo_course.classroom.alt_text import alternative_text
from grpo_course.classroom.screen import WRITTEN, shell, show_widget, smaller

Draw = Callable[..., str]  # draws with matplotlib, returns the sentence under it
DPI = 100  # of a frame: legible, and small enough to store dozens
MOST_FRAMES = 60
PLAYER = Path(__file__).with_name("player.js")
GREEK = {"epsilon": "ε", "mu": "μ", "delta": "δ", "beta": "β", "lam": "λ", "gamma": "γ"}
GREEK["epsilon_high"] = "ε_high"
# On a slide the picture leaves room for the controls under it.
STYLE = (
    ".moving{margin:0;max-width:760px}.moving img{max-width:100%}"
    ".moving p{margin:4px 0;font-weight:600}"
    ".moving label,.moving button{margin:2px 12px 2px 0}"
    ".moving label{display:inline-flex;align-items:center;gap:8px}"
    ".moving input{width:180px}.moving output{min-width:3em}"
    ".reveal .moving{font-size:14px;line-height:18px}"
    ".reveal .moving img{margin:0;width:auto;max-height:calc(var(--picture) - 60px)}"
)


def play(
    draw: Draw, question: str = "", *, still: Any = None, **step: Sequence
) -> None:
    """Show a film: `draw` is called with each value of the one step that is named.

    `draw(name=value)` draws with matplotlib and returns the sentence that stands under
    its picture. The still is the frame of the value `still`, else the last one; the
    film begins at its first frame. Raises ValueError unless exactly one step is named,
    for a still that is none of its values, and for more frames than a notebook should
    store.
    """
    if len(step) != 1:
        raise ValueError(
            f"play(...) was given {len(step)} steps, {sorted(step)}, but a film has "
            "one: play(draw, epoch=range(10))."
        )
    ((name, values),) = step.items()
    shown = values[-1] if still is None else still
    if shown not in values:
        raise ValueError(
            f"still={still!r} is none of the values of {name}: {list(values)}."
        )
    display_frames(draw, question, step, {name: shown}, film=True)


def slide(
    question: str,
    draw: Draw,
    start: Mapping[str, Any] | None = None,
    **knobs: Sequence,
) -> None:
    """Ask a question, and draw anew whenever one of its sliders moves.

    `draw(**values)` draws with matplotlib and returns the sentence that stands under
    the picture; `knobs` name its arguments, each with the values a slider can take;
    `start` says where they stand at first, else at the first value of each. Where
    outputs are stored, all frames are drawn at once instead, and the sliders go through
    them without a kernel.

    Raises ValueError without a question or a knob, and for a start that is no value.
    """
    if not question.strip() or not knobs:
        raise ValueError(
            f"slide({question!r}, ...) with knobs {sorted(knobs)} needs a question and "
            "a knob: slide('Where does it break?', draw, learning_rate=[0.1, 1.0])."
        )
    at = {name: values[0] for name, values in knobs.items()} | dict(start or {})
    for name, value in at.items():
        if value not in knobs.get(name, ()):
            raise ValueError(
                f"start={dict(start or {})}: {name} cannot start at {value!r}. The "
                f"knobs and their values are {dict(knobs)}."
            )
    if not (record.learner_is_here() and display_sliders(draw, question, knobs, at)):
        display_frames(draw, question, knobs, at)


def display_sliders(
    draw: Draw, question: str, knobs: Mapping[str, Sequence], start: Mapping[str, Any]
) -> bool:
    """Sliders that call `draw` in this kernel; False where there are none."""
    from IPython.display import display

    still = {"text/plain": question}  # a front end without sliders shows the start

    def show(**values: Any) -> None:
        sentence = draw(**values)
        display(plt.gcf())
        if len(still) == 1:
            still["image/png"] = png_of(plt.gcf())
            still["text/plain"] += f"\n{sentence}"
        plt.close()
        print(sentence)

    def make(widgets: Any) -> Any:
        sliders = {
            name: widgets.SelectionSlider(
                options=[(text(value), value) for value in values],
                value=start[name],
                description=word(name),
                style={"description_width": "initial"},
            )
            for name, values in knobs.items()
        }
        asked = widgets.HTML(f"<b>{question}</b>")
        picture = widgets.interactive_output(show, sliders)
        return widgets.VBox([asked, *sliders.values(), picture])

    return show_widget(make, still) is not None


def display_frames(
    draw: Draw,
    question: str,
    knobs: Mapping[str, Sequence],
    start: Mapping[str, Any],
    film: bool = False,
) -> None:
    """Draw a frame for each combination of the knobs' values, and display them.

    What is seen is the frame at `start`, and a script that adds controls and frames.
    """
    from IPython.display import display

    count = prod(len(values) for values in knobs.values())
    if not 2 <= count <= MOST_FRAMES:
        sizes = {name: len(values) for name, values in knobs.items()}
        raise ValueError(
            f"knobs with {sizes} values make {count} frames; a notebook stores 2 to "
            f"{MOST_FRAMES}. Give each knob fewer values, or more than one."
        )
    places = list(product(*knobs.values()))
    frames = [frame(draw, dict(zip(knobs, place, strict=True))) for place in places]
    pngs, alts, sentences = (list(each) for each in zip(*frames, strict=True))
    first = places.index(tuple(start[name] for name in knobs))
    address = "data:image/png;base64,"
    settings = {
        "knobs": [
            {"name": word(name), "values": [text(value) for value in values]}
            for name, values in knobs.items()
        ],
        "frames": [address + png for png in pngs],
        "alts": alts,
        "told": sentences,
        "first": 0 if film else first,  # a film begins; its still shows more
        "film": film,
    }
    # No text may end the script that holds it.
    data = json.dumps(settings, ensure_ascii=False).replace("</", "<\\/")
    script = PLAYER.read_text(encoding="utf-8").strip()
    asked = f"<p>{escape(question)}</p>" if question else ""
    html = (
        f'<style>{STYLE}</style><figure class="moving">{asked}'
        f'<img src="{address}{pngs[first]}" alt="{escape(alts[first])}">'
        f"<figcaption>{escape(sentences[first])}</figcaption></figure>"
        f"<script>({script})({data});</script>"
    )
    shown = {
        "text/html": html,
        "image/png": pngs[first],
        "text/plain": "\n".join(filter(None, (question, sentences[first]))),
    }
    if shell() is None:  # plain Python would print the pictures' bytes
        print(shown["text/plain"])
        return
    display(shown, raw=True, metadata={"image/png": {"alt": alts[first]}})


def frame(draw: Draw, values: Mapping[str, Any]) -> tuple[str, str, str]:
    """Draw one frame: its PNG in base 64, what it shows, and the sentence under it."""
    sentence = draw(**values)
    figure = plt.gcf()
    png, alt = png_of(figure), alternative_text(figure)
    plt.close(figure)
    return png, alt, sentence


def png_of(figure: Figure) -> str:
    """A figure's PNG in base 64."""
    if figure.get_layout_engine() is None:
        figure.tight_layout()
    file = io.BytesIO()
    figure.savefig(file, dpi=DPI, **WRITTEN)
    return base64.b64encode(smaller(file.getvalue())).decode()


def frames_of(html: str) -> list[Image.Image]:
    """The frames of a stored film."""
    data = html.rsplit(")(", 1)[1].removesuffix(");</script>")
    addresses = json.loads(data.replace("<\\/", "</"))["frames"]
    pngs = [base64.b64decode(each.split(",", 1)[1]) for each in addresses]
    return [Image.open(io.BytesIO(png)).convert("RGB") for png in pngs]


def word(name: str) -> str:
    """A knob's name as it is written: a Greek letter, or words."""
    return GREEK.get(name, name.replace("_", " "))


def text(value: Any) -> str:
    """A knob's value as it is written."""
    return f"{value:g}" if isinstance(value, float) else str(value)
