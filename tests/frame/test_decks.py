"""The decks of the plans: what is told, what runs unseen, what stands on a slide."""

import ast
import base64
import copy
import json
import math
import re
import struct
from pathlib import Path

import pytest
from nbformat import v4

from grpo_course.workshop import form, plans, present, speaker
from grpo_course.workshop.cells import ASIDE, tags
from grpo_course.workshop.deck import build, fold, heights, needs, offline
from grpo_course.workshop.deck.arrange import AT_THE_DESK, arrange
from grpo_course.workshop.deck.guess import question
from grpo_course.workshop.deck.slide import on_stage
from grpo_course.workshop.form import WIDGET_VIEW

ROOT = Path(__file__).resolve().parents[2]
PLANS = plans.read(ROOT)
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
# What a page would fetch: a link that a reader may click is none of it.
FETCHES = re.compile(r"""(?:src|@import|url\(|<link[^>]*href)[=\s("']*(https?:)?//""")
OWN_FILES = {"deck.css", "reveal.css", "reveal.js", "mathjax.js"}
ONE_NOTEBOOK = "one notebook"


@pytest.fixture(scope="module", params=[*PLANS, *NOTEBOOKS])
def deck(request):
    """The deck of each plan and of each notebook, with what it tells."""
    if request.param in PLANS:
        return PLANS[request.param], build.deck(request.param, ROOT)
    whole = plans.plan([{"notebook": request.param}], title=ONE_NOTEBOOK, minutes=0)
    return whole, build.single(ROOT / "notebooks" / f"{request.param}.ipynb")


def kind(cell):
    return cell.metadata["slideshow"]["slide_type"]


def seen(cells):
    return [cell for cell in cells if kind(cell) not in ("skip", "notes")]


def source_seen(cell):
    return "" if cell.metadata.get("jupyter", {}).get("source_hidden") else cell.source


def parts(cells):
    """The cells of each part: it begins where the seed is set afresh."""
    found = [[]]
    for cell in cells:
        if cell.source == build.AFRESH:
            found.append([])
        found[-1].append(cell)
    return found[1:]


def test_a_deck_tells_the_sections_of_its_plan_in_order(deck):
    plan, made = deck
    told = [
        c.source[3:].split(" <span")[0] for c in made.cells if c.source[:3] == "## "
    ]
    wanted = []
    for part in plan.parts:
        if part.talk:
            titles = [slide.title for slide in part.talk.slides]
            wanted += [on_stage(title[3:]) for title in titles if title[:3] == "## "]
            continue
        notebook = form.read(ROOT / "notebooks" / f"{part.notebook}.ipynb")
        sections = list(plans.told(part, notebook.cells))
        named = [plans.heading(s) for s in sections if s[0] is not notebook.cells[0]]
        wanted += map(on_stage, named)
    # A text may hold a further heading, which is a slide as well.
    assert [each for each in told if each in wanted] == wanted
    assert len(parts(made.cells)) == len(plan.parts)


def test_a_plan_ends_with_what_the_room_can_do_now(deck):
    plan, made = deck
    if plan.title != ONE_NOTEBOOK:
        end = "\n".join(cell.source for cell in made.cells).partition("# You can now")[
            2
        ]
        assert plan.outcomes and all(each in end for each in plan.outcomes)


def test_each_slide_begins_with_a_title(deck):
    cells = seen(deck[1].cells)
    firsts = [cell for cell in cells if kind(cell) in ("slide", "subslide")]
    assert all(re.match(r"#+ \S", cell.source) for cell in firsts)
    assert cells[0] is firsts[0] and len(firsts) > 30
    again = [cell for cell in firsts if cell.source.startswith("##### ")]
    assert all(kind(cell) == "subslide" for cell in again)


def test_every_name_is_set_before_it_is_read(deck):
    """In each part by itself: two notebooks in one kernel do not lean on each other."""
    for cells in parts(deck[1].cells):
        known, bodies = set(needs.KNOWN), {}
        for cell in (c for c in cells if c.cell_type == "code"):
            for each in needs.statements(cell.source):
                if isinstance(each.node, ast.FunctionDef):
                    bodies[each.node.name] = each.reads
                    known |= each.sets
                    continue
                missing = needs.closure(each.reads, bodies) - known - each.sets
                assert not missing, (cell.source, missing)
                known |= each.sets


def test_no_solution_is_in_a_deck(deck):
    cells = deck[1].cells
    assert not any("solution" in tags(cell) for cell in cells)
    assert "<summary>Solution" not in "".join(cell.source for cell in cells)


def test_exercises_without_time_are_no_slides(deck):
    plan, made = deck
    shown = " ".join(cell.source for cell in seen(made.cells))
    for part in plan.parts:
        notebook = form.read(ROOT / "notebooks" / f"{part.notebook}.ipynb")
        everything = part._replace(exercises=None)
        timed = plans.exercises(part, notebook.cells)
        for number in plans.exercises(everything, notebook.cells):
            assert (f"**Exercise {number}**" in shown) == (number in timed), number
    if plan.title != ONE_NOTEBOOK:
        where = r"\*\*Exercise (\d+)\.\d+\*\*[^*]*?In your `(\d+)_"
        pairs = re.findall(where, shown)
        assert all(int(first) == int(second) for first, second in pairs)
        assert len(pairs) == shown.count("In your `")
        assert bool(pairs) == ("**Exercise " in shown)


def test_a_listing_keeps_the_first_line_of_its_docstring():
    words = '```python\ndef f():\n    """One.\n\n    Two.\n    """\n    return 1\n```'
    listed = v4.new_output("display_data", {"text/markdown": words})
    (kept,) = heights.without_widgets([listed])
    assert '    """One."""\n    return 1' in kept.data["text/markdown"]


def test_what_leads_to_an_exercise_without_time_is_told():
    part = plans.Part("06_training_loop", exercises=[])
    notebook = form.read(ROOT / "notebooks" / f"{part.notebook}.ipynb")
    made = arrange(build.told_cells(part, notebook, 0))
    assert "it is 36 noted numbers" in " ".join(c.source for c in seen(made))


def test_asides_are_told_with_whole_notebooks_alone(deck):
    plan, made = deck
    shown = {source_seen(cell) for cell in seen(made.cells)}
    for part in plan.parts:
        cells = form.read(ROOT / "notebooks" / f"{part.notebook}.ipynb").cells
        asides = {c.source for c in cells if ASIDE in tags(c)}
        assert not part.sections or not asides & shown


def test_no_text_of_a_deck_ends_where_something_was_to_come(deck):
    """What a colon announces stands on its slide or on the next, not after a title."""
    cells = seen(deck[1].cells)
    for cell, after in zip(cells, [*cells[1:], None], strict=True):
        announces = cell.cell_type == "markdown" and cell.source.rstrip().endswith(":")
        assert not announces or (after and not after.source.startswith(("# ", "## ")))


def test_a_slide_is_named_by_what_its_first_paragraph_says_first():
    steps = [f"**Step {k}: more.** Words {'and words ' * 110}" for k in (1, 2)]
    cells = [v4.new_markdown_cell(text) for text in ("## A", *steps, "**Limit:** no")]
    told = [cell.source for cell in arrange(cells)]
    assert told[:2] == ["## A", steps[0]]
    assert told[2] == "##### A · Step 2: more" and told[3].startswith("Words and")
    assert "**Limit:** no" in told


def test_imports_and_assertions_are_not_shown(deck):
    for cell in (c for c in seen(deck[1].cells) if c.cell_type == "code"):
        code = source_seen(cell)
        assert not re.search(
            r"^\s*(import |from \S+ import|assert |expect\()", code, re.MULTILINE
        )
        lines = code.count("\n") + 1
        assert heights.code_height(lines) < 0.9 * heights.HEIGHT, code


def test_the_page_has_everything_inside(deck):
    """Pictures, films with their player, formulas as text for the MathJax beside it."""
    plan, made = deck
    page = offline.page(made, "a deck", ROOT / "images")
    assert not FETCHES.search(page)
    local = re.findall(
        r'<(?:script|img|link)[^>]*(?:src|href)="(?!data:)([^"]*)"', page
    )
    assert set(local) == OWN_FILES
    outputs = [o for c in made.cells if c.cell_type == "code" for o in c.outputs]
    films = sum(bool(heights.knobs(output)) for output in outputs)
    assert page.count('<figure class="moving">') == films
    assert (films >= 3 and page.count("$") > 40) or plan.title == ONE_NOTEBOOK
    assert WIDGET_VIEW not in page
    slides = [c for c in made.cells if kind(c) in ("slide", "subslide")]
    columns = [c for c in slides if kind(c) == "slide"]
    assert page.count("<section>") == len(slides) + len(columns)


def test_reveal_and_its_style_sheet_come_from_the_installed_package(tmp_path):
    pytest.importorskip("jupyterlab_rise")
    reveal = offline.source_of("reveal.js/dist/reveal.esm.js")
    assert reveal.count("export default") == 1 and "MIT licensed" in reveal
    css = offline.css_of(offline.source_of("reveal.js/dist/reveal.css"))
    assert ".reveal .slides" in css and not FETCHES.search(css + offline.style())


def test_sizes_are_those_of_the_style_sheet():
    css = offline.CSS.read_text(encoding="utf-8")
    for _, line in heights.CODE:
        assert f"line-height: {line}px !important" in css
    for name, line in (("pre", heights.LISTED), ("div", heights.PRINTED)):
        assert f"line-height: {line}px" in css, name
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", css)]
    assert min(sizes) >= 12, "18 px on a projector of 1280 x 720"


def kept(*sources, chosen):
    """Of each cell what is needed."""
    code = [needs.statements(source) for source in sources]
    return [fold.text(each) for each in needs.needed(code, chosen)]


def test_what_is_needed_is_found_by_names():
    first = "import torch\nx, y = 1, 2\nz = 3"
    assert kept(first, "print(x)", chosen={1}) == ["x, y = 1, 2", "print(x)"]
    twice = ("x = 1", "x = 2", "x[0] = 3", "print(x)")
    assert kept(*twice, chosen={3}) == ["", *twice[1:]]


def test_a_function_needs_what_its_body_reads():
    sources = ("k = 2", "def f(a):\n    b = a * k\n    return b", "[f(i) for i in [1]]")
    assert kept(*sources, chosen={2}) == list(sources)


def test_an_optimizer_changes_the_model_it_was_made_with():
    sources = ("from a import B", "m = B()", "o = B(m.c())", "o.step()", "print(m)")
    assert kept(*sources, chosen={4}) == list(sources)
    assert kept("m = []", "print(m)", "m", chosen={2}) == ["m = []", "", "m"]


def test_an_entry_of_a_table_is_needed_by_who_names_it():
    sources = (
        "from a import MODES",
        'MODES["mine"] = 3',
        'print("mine")',
        'print("no")',
    )
    assert kept(*sources, chosen={2}) == [*sources[:3], ""]
    assert kept(*sources, chosen={3}) == ["", "", "", sources[3]]


def test_a_name_that_nothing_sets_is_an_error():
    with pytest.raises(ValueError, match="nothing sets \\['y'\\]"):
        kept("x = 1", "print(x, y)", chosen={1})


def test_a_cell_is_folded_to_what_matters():
    source = """\
import torch

x = torch.ones(3)
assert x.sum() == 3, "changed?"
expect(x.min() > 0, "changed?")
for k in range(2):
    print(x[k])
    fits = x[k] == 1
    assert fits
    if k == 0:
        guess.reveal(x[k])
word = "up" if x[0] > 0 else "down"
guess.reveal(word)"""
    folded = fold.fold(source, 12)
    assert folded.before == "import torch"
    assert folded.shown == "x = torch.ones(3)\nfor k in range(2):\n    print(x[k])"
    for each in ("assert x.sum()", "expect(x.min()", "guess.reveal(word)"):
        assert each in folded.after
    tight = fold.fold(source, 2)
    assert "torch.ones" in tight.before and tight.shown.startswith("for k")


def test_a_definition_that_is_told_is_not_folded_away():
    body = "\n".join(f"    a = a + {k}" for k in range(6))
    source = f"def f(a):\n{body}\n    return a\n\nprint(f(1))"
    assert fold.fold(source, 2).shown == source


def png(wide, high):
    """The head of a picture: its size is all that a deck reads."""
    head = bytes(16) + struct.pack(">II", wide, high)
    return base64.b64encode(head + bytes(24)).decode()


def moving(*knobs, asked=""):
    """As a film stores it."""
    asked = f"<p>{asked}</p>" if asked else ""
    named = [{"name": name, "values": ["1", "2"]} for name in knobs]
    return (
        f'<figure class="moving">{asked}</figure><script>{json.dumps(named)}</script>'
    )


def picture(source="plot_bands(curves)", wide=0):
    return v4.new_code_cell(
        source,
        outputs=[v4.new_output("display_data", data={"image/png": png(1000, 500)})],
    )


def test_a_picture_in_finer_pixels_is_as_large_as_it_says():
    (output,) = picture().outputs
    assert heights.picture_size(output) == (1000, 500)
    output.metadata["image/png"] = {"width": 500, "height": 250}
    assert heights.picture_size(output) == (500, 250)


def test_much_print_and_its_pictures_stand_on_two_slides():
    """The live deck runs both parts, so nothing may be drawn after it has changed."""
    long = v4.new_output("stream", text="a line\n" * 20)
    drawn = "make()\nplot_bands(curves)\nprint(report)"
    for source, slides in ((drawn, 2), (f"{drawn}\ncurves = 3", 1)):
        cell = picture(source)
        cell.outputs.insert(0, copy.deepcopy(long))
        made = seen(arrange([v4.new_markdown_cell("## A"), cell]))
        shown = [part for part in made if part.cell_type == "code"]
        assert len(shown) == slides
        assert sum(kind(part) == "subslide" for part in made) >= slides - 1
        assert shown[-1].outputs[-1].data["image/png"]


def test_what_to_see_in_a_film_waits_until_the_room_has_answered():
    """The question stands above the film; below it stood its answer."""
    film = picture("play(draw, question, step=range(9))")
    film.outputs[0].data["text/html"] = moving("step")
    told = v4.new_markdown_cell("What to see: the arrows shrink.")
    for cell in (film, picture()):
        cells = [v4.new_markdown_cell("## A"), cell, copy.deepcopy(told)]
        (see,) = [c for c in arrange(cells) if "shrink" in c.source]
        assert kind(see) == "fragment" and " fragment" in offline.cell_html(see)
        assert "The arrows shrink." in see.source and "What to see" not in see.source


def guessed(*texts, asked="Which way?"):
    """Texts, a guess, and the cell on which it comes out."""
    guess = v4.new_code_cell(f'way = predict("{asked}", "up", "down")')
    guess.metadata["tags"] = ["predict"]
    offered = f"{asked}\n  ( ) up   ( ) down\n"
    guess.outputs = [v4.new_output("stream", name="stdout", text=offered)]
    shown = picture("plot_bands(curves)\nway.reveal(found)")
    printed = "0.5\nCame out: down.\n"
    shown.outputs.append(v4.new_output("stream", name="stdout", text=printed))
    return [*map(v4.new_markdown_cell, ("## A", *texts)), guess, shown]


@pytest.mark.parametrize("asked, level", [("Which way?", 6), ("Which " * 20, 4)])
def test_a_guess_that_came_out_names_its_slide(asked, level):
    made = seen(arrange(guessed("Why?", asked=asked.strip())))
    titles = [cell for cell in made if kind(cell) in ("slide", "subslide")]
    assert titles[-1].source.startswith(f"{'#' * level} {asked.strip()} **B. down.**")
    assert kind(titles[-1]) == "subslide"
    outputs = [out for cell in made for out in cell.get("outputs", [])]
    assert [out.text for out in outputs if "text" in out] == ["0.5\n"]


@pytest.mark.parametrize(
    "choices, side",
    [
        (["up", "down", "it stays"], 3),
        (["nearly always", "once in a while", "never"], 1),
        (["about half of them", "none"], 2),
        (["1", "2", "3", "4"], 4),
        (["all of the four", "two of the four", "one", "none"], 2),
        (["a", "b", "c", "d", "e"], 1),
    ],
)
def test_choices_stand_beside_each_other_where_their_words_allow(choices, side):
    cell = v4.new_code_cell(f'way = predict("Which?", {str(choices)[1:-1]})')
    cell.metadata["tags"] = ["predict"]
    offered = "  " + "   ".join(f"( ) {each}" for each in choices)
    cell.outputs = [v4.new_output("stream", name="stdout", text=f"Which?\n{offered}\n")]
    text, high = question(cell)
    assert f'class="guess across-{side}"' in text
    assert [f"- {each}" in text for each in choices] == [True] * len(choices)
    rows = math.ceil(len(choices) / side)
    assert high == heights.ASKED_LINE + rows * heights.CARD + heights.GAP


def titles(cells):
    """The titles of slides, without the mark of their size."""
    heads = (c.source for c in cells if kind(c) in ("slide", "subslide"))
    return [head.partition(" <span")[0] for head in heads]


def test_what_came_out_names_each_part_of_its_cell_but_no_film():
    """The answer stood over what was printed, and its picture on the next slide."""
    for film in (False, True):
        *before, shown = guessed("Why?")
        shown.source = "print(report)\nplot_bands(curves)\nway.reveal(found)"
        shown.outputs[-1]["text"] = "a line\n" * 20 + shown.outputs[-1]["text"]
        if film:
            shown.outputs[0].data["text/html"] = moving("step", asked="When?")
        _, first, second = titles(arrange([*before, shown]))
        assert first == "###### Which way? **B. down.**"
        assert second == ("###### When?" if film else first)


def test_the_question_of_a_film_names_no_part_of_a_later_cell():
    film, shown = picture("play(draw, question, step=range(9))"), picture()
    film.outputs[0].data["text/html"] = moving("step", asked="When?")
    shown.source = "print(report)\nplot_bands(curves)"
    shown.outputs.insert(0, v4.new_output("stream", text="a line\n" * 20))
    made = titles(arrange([v4.new_markdown_cell("## A\n\nWhy?"), film, shown]))
    assert made == ["## A", "###### When?", "##### A", "##### A"]


def test_what_came_out_is_no_title_of_an_exercise():
    *before, shown = guessed("Why?")
    task = v4.new_markdown_cell("**Exercise 1.1** · 5 minutes\n\nWrite it.")
    stub = v4.new_code_cell(
        "def f(x):\n    raise NotImplementedError\n\n\nf = check(f)"
    )
    stub.outputs = [v4.new_output("stream", text="[ ] 1.1 f: not attempted yet.\n")]
    _, exercise, answer = titles(arrange([*before, task, stub, shown]))
    assert exercise == "##### A" and answer == "###### Which way? **B. down.**"


def test_last_words_stand_below_their_picture_where_there_is_room():
    drawn = picture()
    drawn.outputs[0].data["image/png"] = png(400, 150)
    see = v4.new_markdown_cell("What to see: a line.\n\nIt rises.\n\n## B")
    made = seen(arrange([v4.new_markdown_cell("## A"), drawn, see]))
    assert titles(made) == ["## A", "## B"] and made[-2].source == "It rises."
    drawn.outputs[0].data["image/png"] = png(800, 800)
    see.source = see.source.replace("It rises.", "It rises, and falls. " * 20)
    made = arrange([v4.new_markdown_cell("## A"), drawn, see])
    assert titles(made) == ["## A", "##### A", "## B"]


def test_a_guess_takes_what_leads_to_it_along():
    words = "and words " * 45
    first, question, *_ = [
        [cell.source for cell in slide]
        for slide in slides_of(arrange(guessed(words, words, "At last a reason.")))
    ]
    assert "At last a reason." in question and words.strip() in first[1]


def slides_of(cells):
    """The cells that are seen, slide by slide."""
    found = []
    for cell in seen(cells):
        found += [[]] if kind(cell) in ("slide", "subslide") else []
        found[-1].append(cell)
    return found


def test_the_question_of_a_film_is_the_title_of_its_slide():
    film = picture("play(draw)")
    film.outputs[0].data["text/html"] = moving("step", asked="Which &lt; half?")
    text = v4.new_markdown_cell("## A\n\n" + "Words that fill a slide. " * 60)
    *_, title, shown = seen(arrange([text, film]))[:-1]
    assert title.source.startswith("###### Which < half?")
    assert "Which" not in shown.outputs[0].data["text/html"]


def test_a_picture_grows_into_the_room_that_its_knobs_leave():
    heights = []
    for knobs in (("step",), ("step", "group", "rate", "spread", "size", "slope")):
        film = picture("play(draw)")
        film.outputs[0].data |= {
            "image/png": png(500, 200),
            "text/html": moving(*knobs),
        }
        made = arrange([v4.new_markdown_cell("## A"), film])
        marks = [re.search(r"picture-(\d+) grown", c.source) for c in made]
        heights += [int(mark[1]) for mark in marks if mark]
    assert 200 < heights[1] < heights[0] == 280  # 200 is its own, 1.4 the most


def test_what_runs_unseen_parts_no_text_from_its_slide():
    texts = ["## A\n\n" + "word " * 130, "A last word."]
    told = [*map(v4.new_markdown_cell, texts), fold.skipped("x = 1")]
    assert [*map(kind, seen(arrange(told)))] == ["slide", "-", "-"]


def test_no_line_begins_with_what_follows_a_formula():
    text = "Take $x$, then $$y.$$ and $z$ as well ($a$)."
    made = arrange([v4.new_markdown_cell(f"## A\n\n{text}")])[-1].source
    assert re.findall(r'<span class="whole">(.*?)</span>', made) == ["$x$,", "$a$)."]
    assert re.sub(r"<[^>]*>", "", made) == text and ".whole {" in offline.style()


def test_a_room_reads_indices_and_no_link_to_a_notebook():
    text = "π_old ([notebook 05](05_kl.ipynb#k3)), `π_ref`, [a page](https://x.org)"
    wanted = "π<sub>old</sub> (notebook 05), `π_ref`, [a page](https://x.org)"
    title, told = arrange([v4.new_markdown_cell(f"## ε_high\n\n{text}")])
    assert title.source.startswith("## ε<sub>high</sub>") and told.source == wanted


@pytest.mark.parametrize(
    "tag, told", [("", ["Why?", "It held."]), ("reference", ["Why?"])]
)
def test_what_is_folded_is_told_on_a_slide_of_its_own_unless_it_solves_an_exercise(
    tag, told
):
    tried = "<summary>What came out when we tried</summary>"
    folded = f"<details>{tried}\n\nIt held.\n\n</details>"
    text = v4.new_markdown_cell(f"## A\n\nWhy?\n\n{folded}")
    text.metadata["tags"] = [tag]
    made = [cell.source for cell in arrange([text])]
    assert [words for words in made if not words.startswith("#")] == told
    further = [words for words in made if words.startswith("#")][1:]
    assert ["What came out" in title for title in further] == [True] * (len(told) - 1)


def noted(*cells):
    """The notes of each slide."""
    found = []
    for cell in arrange([*cells]):
        if kind(cell) in ("slide", "subslide"):
            found.append([])
        found[-1] += [cell.source] if kind(cell) == "notes" else []
    return found


def test_a_note_begins_with_its_section_and_goes_on_to_its_end():
    """Also where the first text of the section needs two slides, and it follows it.

    A section without a note is told with the one before, up to the end of the part.
    """
    said = speaker.note("*Presenting: 3 min.*", "**Say first.** A.\n\n**Ask.** B.")
    long = [v4.new_markdown_cell("\n\n".join(["## A", *["word " * 90] * 4]))]
    others = [
        v4.new_markdown_cell(text) for text in ("### A, too", "## Next", "# 2. B")
    ]
    first, *more, after = noted(*long, said, *others)
    assert first == [said.source] and after == []
    assert len(more) > 1 and {*map(tuple, more)} == {
        ("*A, continued.*\n\n**Ask.** B.",)
    }


def test_slides_of_a_talk_keep_their_own_notes():
    told = [v4.new_markdown_cell("## A"), speaker.note("one", "1")]
    asked = guessed("Why?")[1:]
    assert noted(*told, *asked, speaker.note("two", "2")) == [
        ["one\n\n1"],
        ["two\n\n2"],
    ]


@pytest.mark.parametrize("name", PLANS)
def test_instructors_read_how_many_slides_a_deck_has(name):
    text = (ROOT / "INSTRUCTORS.md").read_text(encoding="utf-8")
    stated = re.search(rf"^\| `{name}` \|[^|]*\| (\d+) \|", text, re.M)
    made = [kind(cell) for cell in build.deck(name, ROOT).cells]
    assert int(stated[1]) == made.count("slide") + made.count("subslide")


def test_a_room_is_not_told_to_click():
    told = ["## A", f"Why?\n\n{AT_THE_DESK[0]}, click a choice, go on."]
    made = arrange([v4.new_markdown_cell(text) for text in told])
    assert "Why?" in made[1].source and len(made) == 2
    book = form.read(ROOT / "notebooks" / "00_welcome.ipynb")
    assert any(AT_THE_DESK[0] in cell.source for cell in book.cells)


def test_of_a_result_no_code_is_shown():
    cell = v4.new_code_cell("print(3)", outputs=[v4.new_output("stream", text="3\n")])
    for tagged in (["result"], []):
        cell.metadata["tags"] = tagged
        shown = arrange([v4.new_markdown_cell("## A"), copy.deepcopy(cell)])[-1]
        assert shown.outputs and bool(source_seen(shown)) == (not tagged)


def test_what_to_see_goes_with_its_picture():
    see = v4.new_markdown_cell("What to see: a line.\n\nWhat comes next?")
    text = v4.new_markdown_cell("## A heading\n\n" + "Words. " * 60)
    cells = arrange([text, picture(), see, v4.new_code_cell("print(1)")])
    types = [kind(cell) for cell in cells]
    place = next(k for k, cell in enumerate(cells) if "A line." in cell.source)
    assert types[place] == "fragment" and cells[place - 1].outputs
    assert "picture-" in cells[place].source and "next?" not in cells[place].source
    assert "What comes next?" in [cell.source for cell in cells[place + 1 :]]


def test_a_guess_has_its_answer_on_the_next_slide():
    ask = v4.new_code_cell('up = predict("Which way?", "up", "down")')
    ask.metadata["tags"] = ["predict"]
    ask.outputs = [v4.new_output("stream", text="Which way?\n  ( ) up   ( ) down\n")]
    answer = v4.new_code_cell("print(3)\nup.reveal('up')")
    answer.outputs = [v4.new_output("stream", text="3\nCame out: up.\n4\n")]
    cells = arrange([v4.new_markdown_cell("## A"), ask, answer])
    assert [kind(cell) for cell in cells] == [
        "slide",
        "-",
        "skip",
        "subslide",
        "-",
        "skip",
    ]
    assert "**Which way?**" in cells[1].source and cells[2].source == ask.source
    assert cells[4].outputs[0].text == "3\n4\n" and cells[4].source == "print(3)"
    assert "**A. up.**" in cells[3].source and "Came out" not in str(cells[4].outputs)


def test_a_long_table_goes_on_with_its_head():
    rows = "\n".join(f"| {k} |" for k in range(20))
    table = v4.new_markdown_cell(f"## A\n\n| head |\n|---|\n{rows}")
    pieces = [c.source for c in arrange([table]) if c.source.startswith("|")]
    assert len(pieces) == 3 and all(p.startswith("| head |\n|---|") for p in pieces)


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """`slides` in a course of its own; what it would open."""
    found = []
    monkeypatch.setattr(present.lab, "open_at", lambda *given: found.append(given))
    for name in ("notebooks", "images", "grpo_course", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path, found


def test_the_command_makes_a_notebook_and_a_folder(opened, capsys):
    pytest.importorskip("jupyterlab_rise")
    root, found = opened
    present.main(["--plan", "hour", "--no-browser"], root)
    assert found == [(Path("slides", "hour.ipynb"), ["--no-browser"], root)]
    folder = root / "slides" / "hour"
    assert {path.name for path in folder.iterdir()} == OWN_FILES | {"index.html"}
    assert str(folder / "index.html") in capsys.readouterr().out
    made = root / "slides" / "hour.ipynb"
    changed = made.read_text(encoding="utf-8").replace("GRPO in one hour", "My hour")
    made.write_text(changed, encoding="utf-8")
    present.main(["--plan", "hour", "--build"], root)
    assert made.read_text(encoding="utf-8") == changed and len(found) == 1


def test_an_unknown_plan_is_refused(capsys):
    with pytest.raises(SystemExit):
        present.main(["--plan", "week"], ROOT)
    assert "half-day" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "size"),
    [("65 of 125", "print-large"), ("x" * 70, "print-wide"), ("x" * 90, "roomy")],
)
def test_print_alone_is_written_large_and_a_note_takes_no_room(row, size):
    cells = [v4.new_markdown_cell("## A"), v4.new_markdown_cell("A few words.")]
    cells += [v4.new_code_cell("print(told)", outputs=[printed(f"{row}\n")])]
    cells += [v4.new_markdown_cell("Say this. " * 200)]
    cells[2].metadata["tags"] = ["result"]
    cells[3].metadata["slideshow"] = {"slide_type": "notes"}
    title = arrange(cells)[0].source
    assert title == f'## A <span class="{size}"></span>'


def printed(text):
    return v4.new_output("stream", name="stdout", text=text)
