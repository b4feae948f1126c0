"""The tree of all responses of a small world, and who is blamed in it."""

import torch

from grpo_course.classroom.alt_text import alternative_text
from grpo_course.classroom.plots import UP
from grpo_course.lessons.pictures.nb14 import answers_of, node_places, plot_tree
from grpo_course.sequences import ShortAnswers

WORLD = ShortAnswers(num_words=2, longest=2)
REWARD = torch.tensor([answer == (0, 2) for answer in answers_of(WORLD)]).double()


def test_a_beginning_stands_over_the_middle_of_what_it_can_become():
    answers = answers_of(WORLD)
    assert sorted(answers) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2,)]
    places = node_places(answers)
    assert len(places) == len(answers) + 3  # three can be continued
    assert places[()] == (3.0, 0) and places[0,] == (1.0, -1) and places[2,] == (6, -1)


def test_the_path_with_a_reward_is_green_and_only_words_are_written():
    (ax,) = plot_tree(WORLD, REWARD)
    assert sum(line.get_color() == UP and line.get_lw() > 1 for line in ax.lines) == 2
    told = [text.get_text() for text in ax.texts]
    assert told.count("0") == told.count("1") == 3
    assert "7 responses; with a reward: 0 end" in alternative_text(ax.figure)


def test_more_blame_makes_a_larger_dot_and_its_number_stands_once_a_length():
    blame = {"a": torch.full((7,), 0.25), "b": 0.5 / WORLD.lengths}
    one, other = plot_tree(WORLD, REWARD, blame)
    for ax, numbers in ((one, {"0.250"}), (other, {"0.500", "0.250"})):
        told = [text.get_text() for text in ax.texts if "." in text.get_text()]
        assert set(told) == numbers and len(told) == 2
    sizes = {line.get_ms() for line in other.lines if line.get_marker() == "o"}
    assert len(sizes) == 2
