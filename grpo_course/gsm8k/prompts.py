"""What the model is told, and what a good response looks like.

A response thinks between <think> and </think>, and answers between <answer> and
</answer>. A chat template turns messages into the one text that a model reads.
"""

import random
from collections.abc import Mapping

from grpo_course.algorithm.validation import unknown_name
from grpo_course.gsm8k.problems import Problem

THINK, CLOSE_THINK = "<think>", "</think>"
ANSWER, CLOSE_ANSWER = "<answer>", "</answer>"
TAGS = (THINK, CLOSE_THINK, ANSWER, CLOSE_ANSWER)

# For a model that was instructed already: it reads, so tell it.
SYSTEM_PROMPT = """\
Solve the problem. First reason step by step between <think> and </think>. Then write \
the final number, and nothing else, between <answer> and </answer>.

Example
Problem: A box holds 12 pencils. How many pencils do 3 boxes hold?
<think>
Each box holds 12 pencils, so 3 boxes hold 3 * 12 = 36 pencils.
</think>
<answer>36</answer>"""

# For a model that starts from nothing: every token of a prompt costs time.
SHORT_SYSTEM_PROMPT = "Think, then answer."

# The form of ChatML. `add_generation_prompt` opens the assistant's turn.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

FORMS = ("full", "no_tags", "no_answer_tag", "no_think_tag")


def chat_messages(question: str, system_prompt: str | None = SYSTEM_PROMPT) -> list:
    """The conversation so far, as a chat template wants it. None: no system prompt."""
    system = [{"role": "system", "content": system_prompt}] if system_prompt else []
    return [*system, {"role": "user", "content": question}]


def in_template(thinking: str, answer: str) -> str:
    """A response in the full form."""
    return f"{THINK}{thinking}{CLOSE_THINK}{ANSWER}{answer}{CLOSE_ANSWER}"


def plain_thinking(solution: str) -> str:
    """A worked solution without its calculator marks <<...>> and its last #### line."""
    worked = solution.partition("####")[0].rstrip()
    first, *rest = worked.split("<<")
    return first + "".join(part.partition(">>")[2] for part in rest)


def demonstration(problem: Problem, form: str = "full") -> str:
    """The gold response to a problem: its own solution and answer, in one of FORMS.

    The forms leave out tags, never the right answer: it is always the last number.
    """
    thinking, answer = plain_thinking(problem.solution), problem.answer
    if form == "full":
        return in_template(thinking, answer)
    if form == "no_tags":
        return f"{thinking}\n{answer}"
    if form == "no_answer_tag":
        return f"{THINK}{thinking}{CLOSE_THINK}{answer}"
    if form == "no_think_tag":
        return f"{thinking}{ANSWER}{answer}{CLOSE_ANSWER}"
    raise unknown_name("form", form, FORMS)


def conversation_text(
    problem: Problem, system_prompt: str | None = SHORT_SYSTEM_PROMPT
) -> str:
    """A whole conversation as a tiny tokenizer should learn it: words, roles and tags.

    A tokenizer that never saw the roles spends a token on each of their letters.
    """
    messages = chat_messages(problem.question, system_prompt)
    messages += [{"role": "assistant", "content": demonstration(problem)}]
    return "".join(f"{m['role']}\n{m['content']}\n" for m in messages)


def draw_form(rng: random.Random, weights: Mapping[str, float]) -> str:
    """One of FORMS, as often as its weight says.

    A model that always saw the full form would leave the format reward nothing to
    teach: so the warm start shows the others too.
    """
    return rng.choices(list(weights), weights=list(weights.values()))[0]
