"""What notebook 11 says of its rules and of the push that they give."""

from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
import torch

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "11_gsm8k_data.ipynb"


@pytest.fixture(scope="module")
def names():
    """What the code cells make, up to the first push."""
    names = {"__name__": "__main__", "display": print}
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if "learn_tokenizer" in cell.source:
            break
        if cell.cell_type == "code":
            exec(cell.source, names)
    plt.close("all")
    return names


@pytest.mark.slow
def test_the_rules_err_as_told_and_the_trick_fools_them(names):
    paid, right = names["earned"], names["right"]
    errors = {n: ((p > right).sum(), (p < right).sum()) for n, p in paid.items()}
    assert right.sum() == 19 and errors["occurs"] == (12, 0)
    assert errors["last number"] == (4, 0) and errors["strict"] == (1, 3)
    texts = [[" ".join(map(str, range(41))) + " Answer: 6"]] * 16
    for name, rule in names["rules"].items():
        trick = names["pay"](rule, texts, names["answers"]).mean()
        assert trick > paid[name][:16].mean()
        assert (trick == 1) == (name in {"occurs", "form"})


@pytest.mark.slow
def test_a_choice_earns_half_on_others_and_the_32_are_new(names):
    answers, made = names["answers"], names["made"]
    assert (answers[:16].count("6"), answers[16:].count("6")) == (6, 3)
    assert max(answers[:16], key=answers[:16].count) == "6"
    kept = {}
    for kind, some in made.items():
        halves = torch.tensor([int(p.answer) for p in some]).view(300, 2, 16)
        hits = [
            (both == both[0].bincount().argmax()).float().mean(1) for both in halves
        ]
        first, other = sum(hits) / len(hits)
        kept[kind] = (other / first).item()
    assert other.item() == pytest.approx(names["other"].item())  # of the last kind
    assert kept["validation"] == pytest.approx(0.5, abs=0.05)
    assert kept["train"] < 0.4
    first_32 = {p.question: names["calculation"](p) for p in made["validation"][:32]}
    assert {one["question"] for one in names["asked"]} == set(first_32)
    assert not set(first_32.values()) & set(names["known"])


@pytest.mark.slow
def test_all_push_of_group_10_goes_to_text_4(names):
    assert names["doubtful"][3] == (10, 7)
    for given in names["deltas"].values():
        assert (given[10] > 0).nonzero().tolist() == [[7]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "weight", "share"),
    [
        ("centered_rewards", 0.03, 0.1),
        ("normalized_rewards", 1e-5, 0.1),
        ("normalized_rewards", 0.1, 0.75),
    ],
)
def test_so_much_of_the_push_goes_to_the_form_alone(names, way, weight, share):
    strict = names["earned"]["strict"]
    rewards = strict + weight * names["earned"]["form"]
    push = names["compute_deltas"](rewards, way).clamp(min=0)
    got = (push[strict == 0].sum() / push.sum()).item()
    assert got == pytest.approx(share, abs=0.03)


@pytest.mark.slow
def test_the_form_tells_22_tied_groups_apart(names):
    earned = names["earned"]
    tied = {n: (p == p[:, :1]).all(dim=1) for n, p in earned.items()}
    assert tied["strict"].sum() == 23
    assert (tied["strict"] & ~tied["form"]).sum() == 22


def test_the_rules_err_on_the_texts_that_are_named(names):
    paid = names["earned"]
    doubtful = dict(enumerate(names["doubtful"], 1))
    wrong = {n: [k for k, at in doubtful.items() if p[at]] for n, p in paid.items()}
    assert wrong["last number"] == [2, 3, 4, 5, 6, 7, 8] and wrong["strict"] == [4]
