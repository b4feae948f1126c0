"""A cell in parts: what it prints, and each of its pictures, on slides of their own."""

import textwrap

import pytest
from nbformat import v4

from grpo_course.workshop.deck.apart import taken_apart

PRINTED = v4.new_output("stream", name="stdout", text="0.5\n")


def picture(name):
    return v4.new_output("display_data", data={"image/png": "", "text/plain": name}) | {
        "metadata": {"image/png": {"width": 700, "height": 300}}
    }


def parts(source, *outputs):
    cell = v4.new_code_cell(textwrap.dedent(source).strip(), outputs=list(outputs))
    return [
        (
            made.source.split("\n"),
            [o.get("data", {}).get("text/plain") for o in made.outputs],
        )
        for made in taken_apart(cell)
    ]


def test_print_comes_first_and_then_each_picture():
    source = """
        curve = [1.0, 2.0]
        plot_lines(curve)
        print(curve[0])
        plot_bands(curve)
    """
    assert parts(source, PRINTED, picture("lines"), picture("bands")) == [
        (["curve = [1.0, 2.0]", "print(curve[0])"], [None]),
        (["plot_lines(curve)"], ["lines"]),
        (["plot_bands(curve)"], ["bands"]),
    ]


def test_what_changes_axes_stays_with_their_picture():
    source = """
        ax = plot_lines([1.0])
        print("half")
        ax.set_ylim(0, 1)
    """
    assert parts(source, PRINTED, picture("lines")) == [
        (['print("half")'], [None]),
        (["ax = plot_lines([1.0])", "ax.set_ylim(0, 1)"], ["lines"]),
    ]


def test_two_axes_of_one_picture_stay_together():
    source = """
        left, right = axes_row(2)
        plot_lines([1.0], ax=left)
        plot_bands([1.0], ax=right)
        print("half")
    """
    (_, printed), (drawn, pictures) = parts(source, PRINTED, picture("both"))
    assert printed == [None] and len(drawn) == 3 and pictures == ["both"]


def test_pictures_without_print_are_parted_after_what_they_draw():
    source = """
        curve = [1.0]
        plot_lines(curve)
        plot_bands(curve)
    """
    assert parts(source, picture("lines"), picture("bands")) == [
        (["curve = [1.0]", "plot_lines(curve)"], ["lines"]),
        (["plot_bands(curve)"], ["bands"]),
    ]


def test_the_answer_to_a_guess_changes_nothing():
    source = """
        sizes = {1: 0.5}
        plot_lines(sizes)
        group_size.reveal(min(sizes, key=lambda size: sizes[size]))
    """
    assert len(parts(source, PRINTED, picture("lines"))) == 2


@pytest.mark.parametrize(
    "source",
    [
        "for x in (1, 2):\n    print(x)\n    plot_lines(x)",  # prints where it draws
        "curve = [1]\nplot_lines(curve)\ncurve = [2]\nprint(curve)",  # drawn too late
        "curve = [1]\nplot_lines(curve)\ncurve.append(2)\nprint(curve)",
        "print(1)",  # draws by a name that nobody knows
    ],
)
def test_what_cannot_be_parted_stays_whole(source):
    assert parts(source, PRINTED, picture("lines")) == []


def test_one_picture_alone_stays_whole():
    assert parts("plot_lines([1.0])", picture("lines")) == []


def test_what_only_a_picture_needs_is_shown_with_the_picture():
    """The room does not read a film's code under what was printed before it."""
    source = """
        curves = train(3)

        def draw(seed):
            plot_bands(curves[seed])

        question = "When does it rise?"
        print(curves[0])
        play(draw, question, seed=range(3))
    """
    (printed, _), (drawn, _) = parts(source, PRINTED, picture("film"))
    assert printed == ["curves = train(3)", "print(curves[0])"]
    assert "def draw(seed):" in "".join(drawn) and len(drawn) > 3


def test_what_a_picture_shares_or_computes_stays_where_it_was():
    source = """
        half = [0.5]
        found = measure(half)
        print(half)
        plot_bands(half)
        plot_lines(found)
        half = [1.0]
    """
    assert parts(source, PRINTED, picture("half"), picture("found")) == []
    source = source.replace("        half = [1.0]\n", "")
    (printed, _), *_ = parts(source, PRINTED, picture("half"), picture("found"))
    assert printed == ["half = [0.5]", "found = measure(half)", "print(half)"]
