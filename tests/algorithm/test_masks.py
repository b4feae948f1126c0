"""Masks: the end of a response, whatever fills it up, and the start of a prompt."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grpo_course.sampling import pad_rows, prompt_mask, response_mask

EOS = 2


@pytest.mark.parametrize("pad", [EOS, 0])
def test_a_response_counts_up_to_its_eos(pad):
    tokens = torch.tensor([[5, EOS, pad, pad], [EOS, pad, pad, pad], [5, 5, 5, EOS]])
    expected = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]]).bool()
    assert torch.equal(response_mask(tokens, EOS), expected)


def test_a_response_that_was_cut_off_counts_whole():
    assert response_mask(torch.tensor([5, 0, 5]), EOS).all()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=9))
def test_the_mask_is_that_of_a_plain_loop(row):
    length = row.index(EOS) + 1 if EOS in row else len(row)
    expected = [pos < length for pos in range(len(row))]
    assert response_mask(torch.tensor([[row]]), EOS)[0, 0].tolist() == expected


@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=5), min_size=1))
def test_padding_on_the_left_ends_where_the_response_begins(rows):
    padded = pad_rows(rows, pad=0)
    mask = prompt_mask(padded, pad=0)
    assert mask[:, -1].all()
    assert [padded[i][m].tolist() for i, m in enumerate(mask)] == rows


def test_a_pad_token_inside_a_prompt_counts():
    assert prompt_mask(torch.tensor([[0, 3, 0]]), pad=0).tolist() == [
        [False, True, True]
    ]


def test_both_sides():
    assert pad_rows([[1], [1, 2]], 0).tolist() == [[0, 1], [1, 2]]
    assert pad_rows([[1], [1, 2]], 0, "right").tolist() == [[1, 0], [1, 2]]


def test_bad_rows_and_sides_are_named():
    with pytest.raises(ValueError, match="side='up' is not known"):
        pad_rows([[1]], 0, "up")
    for rows in ([], [[1], []]):
        with pytest.raises(ValueError, match="rows has an empty row, or none"):
            pad_rows(rows, 0)
