"""The exercises of 11_gsm8k_data."""

import re

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.sampling import response_mask
from grpo_course.text import responses
from grpo_course.text.grader import is_correct
from grpo_course.text.responses import format_reward


def text_case(description, text, hint=""):
    """What a language model wrote."""
    return case(description, hint, completion=text)


@exercise("11.1")
def extract_answer(completion):
    """str -> str, or None"""
    said = completion.rpartition("</think>")[2]
    before = said.rpartition("</answer>")[0]
    _, opened, inside = before.rpartition("<answer>")
    return inside.partition("</answer>")[0].strip() if opened else None


def _last(pattern, completion):
    """The last match of a pattern behind the thinking."""
    found = re.findall(pattern, completion.rpartition("</think>")[2])
    return found[-1].strip() if found else None


extract_answer.insight = (
    "Cuts from the end: whatever else a model writes, its last answer counts."
)
# Cases where a known mistake gives a wrong text stand before those where it gives None,
# which says less.
extract_answer.cases = (
    text_case("the template", "<think>3+4=7</think><answer>7</answer>"),
    text_case(
        "no thinking",
        "<answer>7</answer>",
        "This text has no </think> at all, and its answer counts all the same.",
    ),
    text_case(
        "new lines",
        "<think>a</think><answer>6</answer>No.\n<answer>\n7\n</answer>",
        "Of two answers the last one counts, without the white space around it.",
    ),
    text_case("white space inside", "<think>3+4</think>\n<answer>\n 7 </answer>"),
    text_case(
        "two answers",
        "<answer>7</answer>No.<answer>8</answer>",
        "The model corrected itself: its last answer counts.",
    ),
    text_case("a price", "<answer>1200</answer>, or <answer>$1,200</answer>"),
    text_case("a price alone", "<answer>$1,200</answer>"),
    text_case("a minus", "<answer>-3</answer>"),
    text_case("words", "<answer>seven, or 7 pens.</answer>"),
    text_case(
        "a < that opens no tag",
        "<answer>6 < 7</answer>",
        "A `<` inside the answer need not begin a tag: look for whole tags.",
    ),
    text_case(
        "an answer in the thinking",
        "<think><answer>7</answer></think>8",
        "The only pair stands in the thinking, so there is no answer: what counts "
        "comes after the last </think>.",
    ),
    text_case(
        "thinking closed twice",
        "<think>a</think><answer>7</answer></think>8",
        "What stands before the last </think> is thinking: cut there, by rpartition.",
    ),
    text_case("no tags", "The answer is 7."),
    text_case("cut off in the middle", "<think>3+4=7</think><answer>7"),
    text_case(
        "the tags crossed",
        "</answer>7<answer>",
        "The closing tag stands before the opening one, so this is no pair.",
    ),
    text_case(
        "closed twice",
        "<answer>7</answer></answer>",
        "A pair ends at the first </answer> behind its <answer>.",
    ),
    text_case(
        "opened twice",
        "<answer>5<answer>7</answer>",
        "Two opening tags stand before one closing tag. The last of them makes the "
        "pair.",
    ),
    text_case(
        "an empty pair",
        "<answer>7</answer><answer></answer>",
        "The last pair holds an empty text, and that is what is asked for. None says "
        "that there is no pair.",
    ),
    text_case(
        "an answer, and one begun",
        "<answer>7</answer><answer>8",
        "The last <answer> is never closed, but a pair stands before it: that counts.",
    ),
)
extract_answer.mistakes = """
completion.rpartition("</think>")[2] => completion | You look into the thinking as \
well. A model may try an answer there; what counts comes after the last </think>.
before.rpartition("<answer>") => before.partition("<answer>") | You take the first \
pair. A model that corrects itself means its last answer: search from the end, with \
rpartition or rfind.
.strip() => | White space is left around the answer: strip() it.
said.rpartition("</answer>")[0] => said | You accept an answer that is never closed. \
It may have been cut off in the middle of a number: without </answer> return None.
if opened else None => if opened else "" | Without a pair of tags you return an empty \
text. Return None, so that nobody takes it for an answer that was given.
inside.partition("</answer>")[0].strip() => "".join(filter(str.isdigit, \
inside.partition("</answer>")[0])) | You keep the digits only. Return the whole text \
between the tags: its number is read later.
if opened else None => if opened else completion.strip() | Where a tag is missing, \
split(...)[-1] is the whole text. Ask first whether there is a pair, and return None \
if not.
return _last("<answer>(.*?)</answer>", completion) | A `.` stops at the end of a \
line, and an answer may have several lines: re.S, or rpartition, which needs no dot.
return _last("(?s)<answer>(.*)</answer>", completion) | `.*` is greedy: with two \
answers it takes everything from the first opening tag to the last closing one.
"""


# Whether each rule pays what stands between the tags; the right answer is 12.
RULES = {
    "contains": lambda said: "12" in said,
    "equals": lambda said: said == "12",
    "last": lambda said: re.findall(r"\d+", said)[-1:] == ["12"],
}


def paid(rule, text):
    """Whether a rule of exercise 11.2 pays a response."""
    if rule == "loose":
        return bool(is_correct(text, "12"))
    said = responses.extract_answer(text)
    return format_reward([text]) == [1.0] and RULES[rule](said)


def judged(misjudged, rule):
    """How a rule judges the response that was written for it."""
    text = misjudged(rule)
    if not isinstance(text, str):
        raise TypeError(f"this is {text!r}. Return the response as one text.")
    deserved = format_reward([text]) == [1.0] and is_correct(text, "12")
    if paid(rule, text) != deserved:
        return "judged wrongly"
    return "paid, rightly" if deserved else "refused, rightly"


@exercise("11.2", use=judged)
def misjudged(rule):
    """the name of a rule -> a response that it judges wrongly"""
    if rule == "loose":
        return "<answer>12</answer>"
    said = {"contains": "120", "equals": "12 pens", "last": "-12"}[rule]
    return f"<think>5+7=12</think><answer>{said}</answer>"


misjudged.insight = (
    "Texts that others would judge wrongly are the tests that a reward needs."
)
misjudged.cases = (
    case(
        "12 stands in the answer",
        "Its answer has to contain a 12 and say another number, or none.",
        rule="contains",
    ),
    case(
        "the answer is 12 to the letter",
        "It pays nothing wrong, so it has to refuse what is right: say the number 12 "
        "in other words than `12`. White space around it changes nothing.",
        rule="equals",
    ),
    case(
        "the last digits are 12",
        "It reads only digits, and only the last in a row. What changes a number and "
        "is no digit, or stands before?",
        rule="last",
    ),
    case(
        "the last pair says 12, in whatever form",
        "The last pair has to say 12, and something else in the response must break "
        "the form.",
        rule="loose",
    ),
)
misjudged.mistakes = """
return "<think>5+7=12</think><answer>12</answer>" | This response is right and in the \
whole form, and each rule pays it. Where does a rule go wrong?
return "<think>5+7=13</think><answer>13</answer>" | Each rule refuses this, and \
rightly so: the number is wrong, or the form. Begin with the right response, and \
change little.
return "<answer>12</answer>" | Without the whole form three of the four rules pay \
nothing, and rightly so. Only `loose` is wrong about it.
if rule == "loose": => if False: && "last": "-12" => "last": "-12", "loose": "12" | \
For `loose` you keep the whole form, and then it judges rightly: break the form.
"""


@exercise("11.3")
def completion_mask(tokens, prompt_width, eos):
    """int [batch pos], int, int -> bool [batch pos]"""
    mask = torch.zeros_like(tokens, dtype=torch.bool)
    mask[:, prompt_width:] = response_mask(tokens[:, prompt_width:], eos)
    return mask


def _tokens_case(description, rows, hint="", *, width=4, eos=2):
    return case(description, hint, tokens=rows, prompt_width=width, eos=eos)


completion_mask.insight = (
    "The same mask as in notebook 09, begun where the prompt ends."
)
completion_mask.cases = (
    _tokens_case("pad is 0", [[1, 5, 2, 1, 6, 7, 2, 0], [0, 5, 2, 1, 2, 0, 0, 0]]),
    _tokens_case(
        "pad is EOS",
        [[1, 5, 2, 1, 6, 7, 2, 2], [2, 5, 2, 1, 2, 2, 2, 2]],
        "Padding may be EOS, too. Only the first EOS of a response was chosen.",
    ),
    _tokens_case(
        "cut off, no EOS",
        [[0, 5, 2, 1, 6, 7, 8, 9], [1, 5, 2, 1, 6, 2, 0, 0]],
        "The first response was cut off before any EOS: all its tokens count.",
    ),
    _tokens_case("a prompt without EOS", [[1, 5, 6, 1, 6, 7, 2, 0]]),
    _tokens_case(
        "the policy wrote token 0",
        [[1, 5, 2, 1, 6, 0, 7, 2], [1, 5, 2, 1, 0, 2, 0, 0]],
        "A token 0 before the EOS was written, whatever pads elsewhere: only the place "
        "of the first EOS decides.",
    ),
    _tokens_case(
        "a prompt of three",
        [[1, 2, 5, 6, 7, 2, 0, 0]],
        "The response begins at prompt_width, and that is not always 4.",
        width=3,
    ),
    _tokens_case(
        "EOS is 9",
        [[1, 5, 9, 1, 6, 2, 9, 0], [0, 5, 9, 1, 9, 0, 0, 0]],
        "The ending token is the argument eos: each tokenizer has its own number.",
        eos=9,
    ),
    _tokens_case("EOS is 0, and pads", [[1, 5, 0, 6, 2, 7, 0, 0]], width=3, eos=0),
)
completion_mask.mistakes = """
return response_mask(tokens, eos) | This is the mask of notebook 09, which ends with \
the first EOS of the prompt. Begin where the response begins: tokens[:, prompt_width:].
response_mask(tokens[:, prompt_width:], eos) => response_mask(tokens, eos)[:, \
prompt_width:] | The prompt holds EOS too: it ends the user's message. You count it, \
and the response is over before it began. Count from prompt_width on.
torch.zeros_like => torch.ones_like | The prompt is True in your mask. Nobody chose \
those tokens: training them teaches the model to ask questions.
response_mask(tokens[:, prompt_width:], eos) => (tokens[:, prompt_width:] == \
eos).cumsum(-1) == 0 | You drop the EOS of the response. Stopping is a choice of the \
policy: without it in the mask, it never learns to stop.
return (tokens != eos) & (torch.arange(tokens.shape[1]) >= prompt_width) | You drop \
the EOS of the response and keep the padding behind it. Stopping is a choice of the \
policy, so its first EOS counts, and nothing after it.
return (tokens != 0) & (torch.arange(tokens.shape[1]) >= prompt_width) | You ask what \
a token is, not where it stands. Padding may be any token, and the policy may write \
0: only the first EOS behind the prompt decides.
response_mask(tokens[:, prompt_width:], eos) => True | You score the padding behind \
the response. Nobody chose it: stop after the first EOS.
return response_mask(tokens[:, prompt_width:], eos) | Your mask is as wide as the \
response. It has to be as wide as the row: put it behind `prompt_width` places that \
are False.
mask[:, prompt_width:] = => mask[:, prompt_width - 1:] = && tokens[:, prompt_width:] \
=> tokens[:, prompt_width - 1:] | You begin one place too early, with the last token \
of the prompt. The response begins at the index prompt_width: tokens[:, prompt_width:].
"""
