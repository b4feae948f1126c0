"""Any text comes back unchanged; tags and digits are one token each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from grpo_course.lm import MODELS, load_tokenizer, make_tiny_model, make_tokenizer
from grpo_course.tasks import TAGS

TEXTS = [
    "Mia has 12 apples and gets 7 more. How many apples does Mia have now?",
    "<think>12+7=19</think><answer>19</answer>",
]
TOKENIZER = make_tokenizer(TEXTS * 10)
CHAT = [{"role": "system", "content": "Reason."}, {"role": "user", "content": "3+4?"}]


@given(st.text())
def test_any_text_comes_back_unchanged(text):
    ids = TOKENIZER(text, add_special_tokens=False).input_ids
    assert TOKENIZER.decode(ids) == text


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_is_one_token_that_decoding_keeps(tag):
    ids = TOKENIZER(f"x{tag}y").input_ids
    assert len(ids) == 3
    assert TOKENIZER.decode(ids, skip_special_tokens=True) == f"x{tag}y"


def test_each_digit_is_one_token_also_after_a_space():
    assert TOKENIZER.tokenize("12+345") == ["1", "2", "+", "3", "4", "5"]
    tokens = TOKENIZER.tokenize("has 12 apples")
    assert tokens[-3:-1] == ["1", "2"]


def test_words_of_the_texts_are_few_tokens():
    assert len(TOKENIZER.tokenize(TEXTS[0])) < 25


def test_pad_and_eos_differ_and_padding_is_on_the_left():
    assert TOKENIZER.eos_token == "<|im_end|>"
    assert TOKENIZER.pad_token == "<|endoftext|>"
    batch = TOKENIZER(["3+4", "3+4+5"], padding=True).input_ids
    assert batch[0][:2] == [TOKENIZER.pad_token_id] * 2
    assert batch[0][2:] == TOKENIZER("3+4").input_ids


def test_chat_template():
    text = TOKENIZER.apply_chat_template(
        CHAT, tokenize=False, add_generation_prompt=True
    )
    assert text == (
        "<|im_start|>system\nReason.<|im_end|>\n"
        "<|im_start|>user\n3+4?<|im_end|>\n<|im_start|>assistant\n"
    )
    ids = TOKENIZER(text, add_special_tokens=False).input_ids
    assert ids.count(TOKENIZER.eos_token_id) == 2
    assert ids[0] == TOKENIZER.convert_tokens_to_ids("<|im_start|>")
    assert TOKENIZER.decode(ids) == text


def test_a_saved_tokenizer_comes_back_the_same(tmp_path):
    TOKENIZER.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again.get_vocab() == TOKENIZER.get_vocab()
    assert again.padding_side == "left" and again.eos_token == "<|im_end|>"
    text = TEXTS[1] + TEXTS[0]
    assert again(text).input_ids == TOKENIZER(text).input_ids
    for tokenizer in (again, TOKENIZER):
        assert tokenizer.decode(tokenizer(TEXTS[1]).input_ids) == TEXTS[1]
    made = [
        t.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
        for t in (again, TOKENIZER)
    ]
    assert made[0] == made[1]


@pytest.mark.parametrize("architecture", MODELS)
def test_beside_a_model_it_still_writes_the_same_tokens(architecture, tmp_path):
    # transformers chooses the tokenizer's class by the model that lies beside it
    model = make_tiny_model(TOKENIZER, architecture, hidden_size=16, num_heads=2)
    model.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    again = load_tokenizer(tmp_path)
    for text in (*TEXTS, "17  dogs\n<answer>\t-3.50</answer> café", CHAT[0]["content"]):
        assert again(text).input_ids == TOKENIZER(text).input_ids
        assert again.decode(again(text).input_ids) == text


def test_the_same_texts_give_the_same_tokenizer():
    assert make_tokenizer(TEXTS * 10).get_vocab() == TOKENIZER.get_vocab()


def test_too_few_tokens_are_named():
    with pytest.raises(ValueError, match="vocab_size=200"):
        make_tokenizer(TEXTS, vocab_size=200)
