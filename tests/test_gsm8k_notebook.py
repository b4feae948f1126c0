"""What notebook 11 says of its rules, and of what a model learns under other masks."""

from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
import torch

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "11_gsm8k_data.ipynb"


@pytest.fixture(scope="module")
def names():
    """What the code cells make."""
    names = {"__name__": "__main__", "display": print}
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if cell.cell_type == "code" and not cell.source.startswith("progress"):
            exec(cell.source, names)
    plt.close("all")
    return names


@pytest.mark.slow
def test_the_rules_err_as_told_and_the_trick_fools_them(names):
    paid, right = names["earned"], names["right"]
    errors = {n: ((p > right).sum(), (p < right).sum()) for n, p in paid.items()}
    assert right.sum() == 19 and errors["occurs"] == (12, 0)
    assert errors["last number"] == (4, 0) and errors["strict"] == (1, 3)
    texts = [[" ".join(map(str, range(41))) + " Answer: 6"]] * len(right)
    for name, rule in names["rules"].items():
        trick = names["pay"](rule, texts, names["answers"]).mean()
        assert trick > paid[name].mean()
        assert (trick == 1) == (name in {"occurs", "form"})


@pytest.mark.slow
def test_a_quarter_of_the_undivided_push_goes_to_the_form_alone(names):
    strict = names["earned"]["strict"]
    rewards = strict + 0.1 * names["earned"]["form"]
    push = names["compute_deltas"](rewards, "centered_rewards").clamp(min=0)
    assert 0.2 < push[strict == 0].sum() / push.sum() < 0.3


@pytest.mark.slow
def test_what_a_mask_leaves_out_or_marks_as_well_shows_in_the_texts(names):
    imitate, whole, pad = (names[n] for n in ("imitate", "completion_mask", "PAD"))
    digits = torch.tensor(names["tokenizer"]("0123456789").input_ids)
    written = dict(names["written"])
    written["prompt"] = imitate(lambda tokens, *_: tokens != pad)
    written["padding"] = imitate(lambda *row: whole(*row) | (row[0] == pad))
    written["no digits"] = imitate(
        lambda *row: whole(*row) & ~torch.isin(row[0], digits)
    )
    form = {name: paid.mean() for name, paid in names["judge"](written)[0].items()}
    assert form["no training"] == 0
    assert form["without the end"] < 0.4 and form["no digits"] < 0.1
    assert all(form[n] > 0.8 for n in ("your mask", "mine", "prompt", "padding")), form
    begun = [text[:1].isdigit() for group in written["mine"] for text in group]
    assert sum(begun) < 0.2 * len(begun)
