"""A question whose answer is found by moving a slider."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt

from grpo_course.classroom import record
from grpo_course.classroom.plots.moving import Draw, display_frames, text, word


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
    if record.learner_is_here():
        display_live(question, draw, knobs, at)
    else:
        display_frames(draw, question, knobs, at)


def display_live(
    question: str, draw: Draw, knobs: Mapping[str, Sequence], start: Mapping[str, Any]
) -> None:
    """Sliders that call `draw` in this kernel."""
    from IPython.display import display
    from ipywidgets import HTML, SelectionSlider, VBox, interactive_output

    sliders = {
        name: SelectionSlider(
            options=[(text(value), value) for value in values],
            value=start[name],
            description=word(name),
            style={"description_width": "initial"},
        )
        for name, values in knobs.items()
    }
    picture = interactive_output(drawn_and_told(draw), sliders)
    box = VBox([HTML(f"<b>{question}</b>"), *sliders.values(), picture])
    # A front end without widgets shows the question.
    display(box._repr_mimebundle_() | {"text/plain": question}, raw=True)


def drawn_and_told(draw: Draw) -> Callable[..., None]:
    """A function that displays the picture and prints its sentence."""
    from IPython.display import display

    def show(**values: Any) -> None:
        told = draw(**values)
        display(plt.gcf())
        plt.close()
        print(told)

    return show
