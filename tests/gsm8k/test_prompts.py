"""Messages, the template, and demonstrations with and without tags."""

import pytest

from grpo_course.gsm8k import (
    FORMS,
    SHORT_SYSTEM_PROMPT,
    SYSTEM_PROMPT,
    correctness_reward,
    demonstration,
    lenient_reward,
    make_problems,
    plain_thinking,
)
from grpo_course.lm import make_tokenizer
from grpo_course.tasks import (
    CHAT_TEMPLATE,
    TAGS,
    chat_messages,
    conversation_text,
    format_reward,
)

SHARES = {"full": 1.0, "no_tags": 0.0, "no_answer_tag": 0.4, "no_think_tag": 0.4}


@pytest.mark.parametrize("form", FORMS)
def test_demonstrations_are_right_and_lack_what_their_form_says(form: str) -> None:
    problems = make_problems("train", 100, seed=0)
    texts = [demonstration(problem, form) for problem in problems]
    answers = [problem.answer for problem in problems]
    tagged = form in ("full", "no_think_tag")
    assert correctness_reward(texts, answers) == [float(tagged)] * 100
    assert lenient_reward(texts, answers) == [1.0] * 100
    assert format_reward(texts) == [pytest.approx(SHARES[form])] * 100


def test_unknown_form() -> None:
    with pytest.raises(ValueError, match="form='wild' is not known"):
        demonstration(make_problems("train", 1, seed=0)[0], "wild")


def test_thinking_has_no_marks_and_no_final_line() -> None:
    solution = "In May 48/2 = $<<48/2=24>>24.\nSo 48+24 = <<48+24=72>>72.\n#### 72"
    assert plain_thinking(solution) == "In May 48/2 = $24.\nSo 48+24 = 72."
    assert plain_thinking("no marks") == "no marks"


def test_messages() -> None:
    assert chat_messages("How many?", None) == [
        {"role": "user", "content": "How many?"}
    ]
    system, user = chat_messages("How many?", SHORT_SYSTEM_PROMPT)
    assert system == {"role": "system", "content": SHORT_SYSTEM_PROMPT}
    assert user["content"] == "How many?"
    assert all(tag in SYSTEM_PROMPT for tag in TAGS)


def test_the_example_in_the_system_prompt_is_in_full_form() -> None:
    example = SYSTEM_PROMPT.partition("boxes hold?\n")[2]
    assert format_reward([example]) == [1.0]
    assert correctness_reward([example], ["36"]) == [1.0]


def test_the_tokenizer_has_this_template_and_these_tags() -> None:
    problems = make_problems("train", 200, seed=0)
    system = SHORT_SYSTEM_PROMPT
    tokenizer = make_tokenizer(
        [conversation_text(p.question, demonstration(p), system) for p in problems]
    )
    assert tokenizer.chat_template == CHAT_TEMPLATE
    for tag in TAGS:
        assert len(tokenizer.encode(tag, add_special_tokens=False)) == 1
    messages = chat_messages(problems[0].question, system)
    text = tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True
    )
    assert text == (
        f"<|im_start|>system\n{system}<|im_end|>\n"
        f"<|im_start|>user\n{problems[0].question}<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    for problem in problems:
        messages = chat_messages(problem.question, system)
        ids = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False
        )
        assert len(ids) <= 56
        response = tokenizer.encode(demonstration(problem), add_special_tokens=False)
        assert len(response) < 24  # and <|im_end|>: at most 24 new tokens
        assert tokenizer.decode(response) == demonstration(problem)
