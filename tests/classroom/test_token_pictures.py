"""Texts as coloured cells: each token in its place, each arrow from the right row."""

import torch
from matplotlib.colors import to_rgba

from grpo_course.classroom.plots import (
    token_gradients,
    token_places,
    token_rows,
    token_writing,
)
from grpo_course.classroom.plots.alt_text import alternative_text

PROMPT = torch.tensor([0, 0, 3])
RESPONSE = torch.tensor([5, 2, 0, 0])
MASK = torch.tensor([True, True, False, False])


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_a_zero_that_was_chosen_is_no_padding():
    chosen = torch.tensor([0, 2, 0, 0])
    kinds = token_rows.kinds_of(PROMPT, 0, MASK, chosen, eos=2)
    assert kinds == ["padding"] * 2 + ["prompt", "response", "end"] + ["padding"] * 2


def test_a_batch_has_a_row_of_cells_for_each_response():
    responses, mask = torch.stack([RESPONSE, RESPONSE]), torch.stack([MASK, ~MASK])
    ax = token_rows.plot_batch(PROMPT, responses, mask, eos=2, pad=0)
    assert texts(ax)[:8] == ["0", "0", "3", "5", "2", "0", "0", "response 0"]
    assert "responses of 2, 2 tokens" in alternative_text(ax.figure)


def test_where_the_mask_may_be_wrong_the_legend_says_kept_and_dropped():
    parts = {"names": token_rows.MASKED, "eos": 2, "pad": 0}
    ax = token_rows.plot_batch(PROMPT, RESPONSE[None], ~MASK[None], **parts)
    assert texts(ax)[-4:] == ["prompt", "kept", "kept EOS", "dropped"]
    assert "the rest dropped" in alternative_text(ax.figure)


def test_quantities_stand_below_their_tokens_and_padding_holds_none():
    rows = {
        "mask": MASK,
        r"log $\pi$": torch.tensor([-1.0, -2.0, -3.0, -4.0]),
        r"$\delta$": torch.full((4,), -0.5),
    }
    ax = token_rows.plot_quantities(PROMPT, RESPONSE, rows, MASK, eos=2, pad=0)
    shown = texts(ax)
    assert {"-1.00", "-.50"} <= set(shown) and "-3.00" not in shown
    places = {t.get_text(): t.get_position() for t in ax.texts}
    assert places["-2.00"][0] == places["2"][0] == 4.5
    (down, _) = [p for p in ax.patches if hasattr(p, "get_arrowstyle")]
    start, end = down._posA_posB
    assert end[1] > start[1]  # the axis points down, and so does the arrow


def test_row_t_of_the_logits_points_at_token_t_plus_one():
    tokens = torch.tensor([3, 1, 4, 6, 0])
    ax = token_places.plot_shift(tokens, 3, torch.tensor([-1.0, -2.0, -3.0, -4.0]))
    arrows = [p._posA_posB for p in ax.patches if hasattr(p, "get_arrowstyle")]
    assert [(int(a[0]), int(b[0])) for a, b in arrows] == [
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 4),
    ]
    assert {"-3.0", "-4.0"} <= set(texts(ax))
    assert "-1.0" not in texts(ax)  # a token of the prompt


def test_left_padding_ends_every_prompt_where_its_response_begins():
    right, left = torch.tensor([[3, 0], [3, 1]]), torch.tensor([[0, 3], [3, 1]])
    ax = token_places.plot_padding(right, left, pad=0, num_new=2)
    cut = [line.get_xdata()[0] for line in ax.lines]
    hatched = [p.get_x() for p in ax.patches[:-3] if p.get_hatch()]
    assert [round(x - 0.04) for x in hatched] == [1, 6]  # next to the cut, far from it
    assert cut == [2, 8]


def test_what_was_written_is_framed_in_the_row_of_its_step():
    probs = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    tokens = torch.tensor([1, 0])
    ax = token_writing.plot_writing(probs, tokens, torch.tensor([1, 1]), rows=3)
    assert [p.get_xy() for p in ax.patches] == [(0.5, -0.5), (-0.5, 0.5)]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["reads 1 1", "reads 1"]
    assert "1 at 0.10, 0 at 0.20" in alternative_text(ax.figure)


def test_the_cells_of_one_token_are_coloured_in_each_text():
    texts = torch.tensor([[4, 1, 2], [1, 1, 1]])
    ax = token_writing.plot_texts(texts, ["epoch 0", "epoch 9"], token=1)
    first, *_ = token_rows.KINDS["response"]
    hits = [p.get_facecolor() == to_rgba(first) for p in ax.patches]
    assert hits == [False, True, False, True, True, True]
    assert {"1 of 3", "3 of 3", "epoch 9"} <= {text.get_text() for text in ax.texts}
    assert "epoch 0 1 of 3, epoch 9 3 of 3" in alternative_text(ax.figure)


def test_only_numbers_out_of_place_are_framed():
    prompts, answers = torch.tensor([[2, 2, 5], [3, 1, 4]]), torch.tensor([[2, 5, 5]])
    answers = torch.cat([answers, torch.tensor([[1, 3, 4]])])
    ax = token_writing.plot_answers(prompts, answers, torch.tensor([5.0, 5.0]))
    frames = [p.get_xy() for p in ax.patches if p.get_linewidth() == 3]
    assert frames == [(token_writing.ANSWER + 1, 1)]
    assert {"wrong", "sorted", "5 of 5"} <= set(texts(ax))


def test_a_cell_for_each_token_holds_its_gradient_and_padding_none():
    mask = torch.tensor([[[True, True], [True, False]]])
    deltas = torch.tensor([[1.0, -1.0]])
    gradient = torch.tensor([[[-0.25, -0.25], [0.5, 0.0]]])
    ax = token_gradients.plot_gradients(gradient, deltas, mask)
    assert texts(ax) == ["-0.250", "-0.250", "+0.500"]
    assert len(ax.patches) == 1
    assert ax.get_title() == "the deltas add up to 0; norm of the gradient 0.612"


def test_tokens_times_delta_add_up():
    lengths, deltas = torch.tensor([3, 2]), torch.tensor([1.5, -0.5])
    left, right = token_gradients.draw_lengths(lengths, deltas)
    assert [bar.get_width() for bar in left.patches] == [3, 2]
    assert right.get_title() == "their sum: +3.50"
    assert "2 times -0.50; the sum +3.50" in alternative_text(left.figure)


def test_places_are_counted_with_padding_and_without():
    real = torch.tensor([[False, True], [True, True]])
    ax = token_places.plot_places(real, num_new=1)
    numbers = [t for t in texts(ax) if t.isdigit()]
    assert numbers == [*"0", *"10", *"21", *"00", *"11", *"22"]
    assert [line.get_xdata()[0] for line in ax.lines] == [2, 2]
    assert "first tokens stand at 1, 0," in alternative_text(ax.figure)


def test_the_last_state_of_each_panel_is_framed_and_held_against_the_first():
    alone, read = torch.tensor([[0.5, -0.5]]), torch.tensor([[0.1, 0.2], [0.5, 0.0]])
    read = {"alone": (torch.tensor([3]), alone), "read": (torch.tensor([0, 3]), read)}
    one, other = token_places.plot_states(read)
    assert [ax.patches[0].get_x() for ax in (one, other)] == [-0.5, 0.5]
    assert other.images[0].get_array().tolist() == read["read"][1].T.tolist()
    assert "alone by at most 0.00; read by at most 0.50" in alternative_text(one.figure)
