"""The exercises of 11_gsm8k_data."""

import re
from itertools import takewhile
from time import thread_time

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.lessons.exercises.shared import Long
from grpo_course.sampling import response_mask
from grpo_course.text.grader import (
    correctness_reward,
    gold_number,
    is_correct,
    is_leniently_correct,
    read_number,
)
from grpo_course.text.responses import TAGS, format_reward


def text_case(description, text, hint=""):
    """What a language model wrote."""
    return case(description, hint, completion=text)


MANY_TAGS = Long(
    '"<answer>7</answer>" + 8_000 * "<think><answer>"',
    "<answer>7</answer>" + 8_000 * "<think><answer>",
)


def patiently(function, completion):
    """What is found, unless work that grows with the square of the length is given up.

    Plain searches need some milliseconds of the processor for all of a Long, and a
    pattern that begins anew at each tag four seconds. Parts come first, each twice as
    long as the one before, so that nobody waits for those.
    """
    began, found = thread_time(), None
    for halvings in range(7 if isinstance(completion, Long) else 0, -1, -1):
        found = function(completion[: len(completion) >> halvings])
        if thread_time() - began > 0.1:
            return "nothing yet, after a tenth of a second"
    return found


@exercise("11.1", use=patiently)
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


def _without_tags(completion):
    said = completion.rpartition("</think>")[2]
    return said.replace("<answer>", "").replace("</answer>", "").strip()


extract_answer.insight = (
    "Plain searches from the end: one pass, whatever a model writes."
)
# Cases where a known mistake gives a wrong text stand before those where it gives None,
# which says less.
extract_answer.cases = (
    text_case("the template", "<think>3+4=7</think><answer>7</answer>"),
    text_case("no thinking", "<answer>7</answer>"),
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
    text_case("an answer, and one begun", "<answer>7</answer><answer>8"),
    text_case(
        "thousands of tags that never close",
        MANY_TAGS,
        "This takes too long: from each opening tag your search looks on to the end, "
        "so twice the text is four times the work. rpartition and rfind look through "
        "once.",
    ),
)
extract_answer.mistakes = r"""
return (_last("(?s)<answer>(.*?)</answer>", completion) or "<answer>").rpartition("<answer>")[2].strip() or None | All texts are read rightly, but this takes too long: from each opening tag the pattern looks on to the end, so twice the text is four times the work. rpartition and rfind look through once.
completion.rpartition("</think>")[2] => completion | You look into the thinking as well. A model may try an answer there; what counts comes after the last </think>.
completion.rpartition("</think>")[2] => completion.split("</think>", 1)[-1] | You cut at the first </think>. A model may write it again, so cut at the last: rpartition, or split(...)[-1].
completion.rpartition("</think>")[2] => completion && said.rpartition("</answer>")[0] => said && if opened else => if opened and "</answer>" in inside else | You search the whole text for the last <answer>. What stands in the thinking is no answer: cut at the last </think>. And an <answer> that is never closed hides the pair before it: cut at the last </answer>, too.
before.rpartition("<answer>") => before.partition("<answer>") | You take the first pair. A model that corrects itself means its last answer: search from the end, with rpartition or rfind.
.strip() => | White space is left around the answer: strip() it.
inside.partition("</answer>")[0].strip() => inside.strip() | A closing tag is left in the answer of a model that closes it twice. Cut at the first </answer> behind the <answer>: partition.
said.rpartition("</answer>")[0] => said && if opened else None => | You return a text where there is no pair as well: if a tag is missing, split()[-1] and rpartition()[2] give all of the text. Look whether both tags are there, and return None if not.
said.rpartition("</answer>")[0] => said | You accept an answer that is never closed. It may have been cut off in the middle of a number: without </answer> return None.
said.rpartition("</answer>")[0] => said && if opened else => if opened and "</answer>" in inside else | An <answer> that is never closed hides the pair before it. Cut at the last </answer> first, then look for the <answer> before that.
if opened else None => if opened else "" | Without a pair of tags you return an empty text. Return None, so that nobody takes it for an answer that was given.
if opened else None => if opened and "</think>" in completion else None | Without any </think> you return None, but then no thinking is marked: the whole text may hold the answer.
return _last("(?s)<answer>(.*)</answer>", completion) | `.*` is greedy: with two answers it takes everything from the first opening tag to the last closing one.
return _last("<answer>(.*?)</answer>", completion) | A `.` in a pattern stops at the end of a line, and an answer may stand on a line of its own. Add re.DOTALL, or use rpartition.
return _last("(?s)<answer>(.*?)</answer>", completion) | Your pattern begins at the first <answer> that it meets and runs over the next one. Search from the end: the last <answer> before the </answer>.
return _last(r"<answer>\s*([0-9]+)\s*</answer>", completion) | You ask for digits, and $1,200, -3 or words are answers too. Return the text as it stands; what number it says is judged later.
inside.partition("</answer>")[0].strip() => (lambda text: int(text) if text.isdecimal() else text)(inside.partition("</answer>")[0].strip()) | You turn the text into a number. Return the text as it stands: `$1,200` and `seven` are answers too, and what they say is judged later.
return re.findall("(?s)<answer>(.*?)</answer>", completion.rpartition("</think>")[2]) | You return all that is found. Return the text of the last pair, or None.
inside.partition("</answer>")[0].strip() => opened + inside.partition("</answer>")[0].strip() | The tag itself is left in the answer: the text begins behind it, len("<answer>") places further on.
inside.partition("</answer>")[0].strip() => (lambda text: float(text) if re.fullmatch("-?[0-9.]+", text) else None)(inside.partition("</answer>")[0].strip()) | You turn the text into a number. Return the text as it stands: `$1,200` and `seven` are answers too, and what they say is judged later.
return _without_tags(completion) | You delete the tags and keep all the text around them. Only what stands between the last <answer> and its </answer> is the answer.
"""


@exercise("11.2")
def tag_share(completion):
    """str -> float from 0 to 1"""
    tags = ("<think>", "</think>", "<answer>", "</answer>")
    return sum(completion.count(tag) == 1 for tag in tags) / len(tags)


def _template(completion):
    template = r"\s*<think>.+</think>\s*<answer>.+</answer>\s*"
    return bool(re.fullmatch(template, completion, re.DOTALL))


def _up_to_the_first_missing(completion):
    return len(list(takewhile(lambda tag: completion.count(tag) == 1, TAGS))) / 4


def _one_behind_another(completion):
    points, rest = 0, completion
    for tag in TAGS:
        if completion.count(tag) == 1 and tag in rest:
            points, rest = points + 1, rest.partition(tag)[2]
    return points / 4


tag_share.insight = (
    "Each tag pays for itself, so most groups have something to compare."
)
tag_share.cases = (
    text_case("the template", "<think>3+4=7</think><answer>7</answer>"),
    text_case("no answer tags", "<think>3+4=7</think>7"),
    text_case("the first tag alone", "<think>3+4=7"),
    text_case("the last tag alone", "3+4=7</answer>"),
    text_case("no tags", "7"),
    text_case("a tag three times", "<think><think><think>3+4=7"),
    text_case(
        "two answers",
        "<think></think><answer>7</answer><answer>",
        "Here <answer> stands twice and does not count. The other three tags do.",
    ),
    text_case(
        "a tag in capitals",
        "<THINK>3+4=7</think>",
        "<THINK> is another text than <think>, and no tag. Count them as they stand.",
    ),
    text_case("the answer first", "<answer>7</answer><think>3+4=7</think>"),
    text_case("closed, then opened", "</answer><answer>7"),
)
tag_share.mistakes = """
completion.count(tag) == 1 => completion.count(tag) > 0 | A tag that stands three \
times earns its point. Then a model may repeat tags for free: count() must be 1.
("<think>", "</think>", "<answer>", "</answer>") => ("think", "/think", "answer", \
"/answer") | Whole tags are not found. Write them as they stand, with both brackets: \
"think" alone stands in "</think>" as well, so it is never there exactly once.
completion.count(tag) => completion.split().count(tag) | split() finds a tag only \
with white space around it, which it need not have: count in the text itself.
("<think>", "</think>", "<answer>", "</answer>") => ("<think>", "<answer>") | You \
look at the opening tags alone. All four count.
completion.count(tag) == 1 => completion.count(tag) <= 1 | A tag that is missing \
earns its point as well. It counts when it stands exactly once: == 1.
return sum({0: 0, 1: 1}.get(completion.count(tag), -1) for tag in TAGS) / 4 | A tag \
that stands more than once costs a point. It does not count, and no more: 0.
/ len(tags) => / max(1, sum(map(completion.count, tags))) | You divide by how many \
tags there are in the response. The share is that of the four: divide by 4.
completion.count(tag) == 1 => completion.count(tag) | You pay for each copy of a tag, \
so the best response is nothing but tags. A tag counts when it stands exactly once.
/ len(tags) => | This is a count from 0 to 4. A share is divided by the number of tags.
return float(_template(completion)) | All or nothing: a response with three tags \
earns as little as one with none, so a group that has not found the template yet is \
tied. Pay for each tag.
return float(all(completion.count(tag) == 1 for tag in TAGS)) | All four or nothing: \
a response with three tags earns as little as one with none, so a group that has not \
found the template yet is tied. Pay for each tag.
return sum(completion.count(a) == 1 == completion.count(b) for a, b in (TAGS[:2], \
TAGS[2:])) / 2 | You pay for pairs. The step from no tag to one tag earns nothing \
then, and one tag is what a model finds first.
return (completion.count(TAGS[0]) == 1) / 4 | Only the first tag is looked at. Is the \
`return` inside the loop?
return sum(completion.count(tag) == 1 for tag in TAGS[2:]) / 2 | You look at the \
answer tags alone. All four count.
return format_reward([completion])[0] | That is format_reward, which keeps a fifth \
for good order. Asked is the share of the four tags that stand once.
return _up_to_the_first_missing(completion) | You stop at the first tag that is \
missing. Any tag counts, alone or not: go on with the others.
return _one_behind_another(completion) | You count a tag only behind those before it. \
The order is another matter: here any tag counts, wherever it stands.
"""


@exercise("11.3")
def honest_reward(completion, answer):
    """str, str -> 1.0 or 0.0"""
    whole = format_reward([completion]) == [1.0]
    right = correctness_reward([completion], [answer]) == [1.0]
    return float(whole and right)


def _reply(description, text, answer="7", hint=""):
    return case(description, hint, completion=text, answer=answer)


def _numbers(completion):
    return [read_number(found) for found in re.findall(r"[0-9][0-9.,]*", completion)]


honest_reward.insight = (
    "Nothing but the right answer in the right form pays. It is also sparse: training "
    "starts better with partial credit for the form."
)
honest_reward.cases = (
    _reply(
        "a right response",
        "<think>3+4=7</think><answer>7</answer>",
        hint="This one earns 1. Both functions return lists, and [1.0] == 1.0 is "
        "False: compare with [1.0], or take the one entry with [0].",
    ),
    _reply(
        "a wrong response",
        "<think>3+4=8</think><answer>8</answer>",
        hint="The form is whole and the number wrong: that earns nothing. Mind that a "
        "list is true even as [0.0]: compare it with [1.0].",
    ),
    _reply("a digit of it", "<think>8+9=17</think><answer>17</answer>"),
    _reply("right, then wrong", "<think>7</think><answer>8</answer>"),
    _reply("no number in the tag", "<think>7</think><answer>?</answer>"),
    _reply(
        "$1,200.00",
        "<think>a</think><answer>$1,200.00</answer>",
        "1200",
        "As texts $1,200.00 and 1200 differ, as numbers they are one: let "
        "correctness_reward compare them.",
    ),
    _reply(
        "a minus",
        "<think>2-5</think><answer>-3</answer>",
        "-3",
        "A number may be negative, so the minus belongs to it.",
    ),
    _reply(
        "a minus lost",
        "<think>2-5</think><answer>3</answer>",
        "-3",
        "The minus of the right answer is missing here: 3 is not -3.",
    ),
    _reply("two guesses", "<think>3+4=7</think><answer>6 or 7</answer>"),
    _reply(
        "two guesses, the right one first",
        "<think>3+4=7</think><answer>7 or 6</answer>",
        hint="Neither of two guesses is the answer: correctness_reward grades the "
        "answer as a whole.",
    ),
    _reply("no tags", "3+4=7"),
    _reply("no thinking", "<answer>7</answer>"),
    _reply("two answers", "<think>x</think><answer>6</answer><answer>7</answer>"),
    _reply("empty thinking", "<think></think><answer>7</answer>"),
    _reply("words around", "So: <think>3+4=7</think><answer>7</answer>"),
    _reply(
        "tags in the thinking",
        "<think>a<answer>6</answer></think><answer>7</answer>",
        hint="The thinking holds a pair of tags of its own. `.+` in a pattern runs "
        "over tags: the whole form has each tag once.",
    ),
    _reply(
        "a new line between the pairs",
        "<think>3+4=7</think>\n<answer>7</answer>\n",
        hint="White space between the pairs, or behind them, breaks no form.",
    ),
    _reply(
        "a < in the thinking",
        "<think>3 < 4, so 7</think><answer>7</answer>",
        hint="A `<` alone is no tag. Look for whole tags, as format_reward does.",
    ),
    _reply(
        "lines of thinking",
        "<think>3+4\n= 7</think><answer>7</answer>",
        hint="Thinking may have several lines. A `.` in a pattern stops at the end of "
        "one: re.DOTALL.",
    ),
)
# The narrow mistakes stand first: where two explain as many wrong cases, the first is
# named.
honest_reward.mistakes = """
format_reward([completion]) == [1.0] => format_reward([completion])[0] >= 0.8 | You \
let a broken form pass: four tags, but words around them, or nothing inside. The \
whole form is format_reward([completion]) == [1.0].
format_reward([completion]) == [1.0] => "<think>" in completion and "</think>" in \
completion | You look for the thinking tags alone. The whole form has each of the \
four tags once, in order and filled: format_reward([completion]) == [1.0].
format_reward([completion]) == [1.0] => _template(completion) | `.+` in a pattern \
runs over tags, so a second answer hides inside it. The whole form has each tag once: \
format_reward([completion]) == [1.0].
correctness_reward([completion], [answer]) == [1.0] => \
is_leniently_correct(completion, answer) | You take the last number, even of `6 or \
7`, and even one outside the answer. Grade the answer as a whole: correctness_reward \
does.
return float(is_leniently_correct(completion, answer)) | You take the last number \
wherever it stands. It is a fine measure of arithmetic, but as a reward it teaches no \
form.
correctness_reward([completion], [answer]) => correctness_reward([answer], \
[completion]) | You exchanged the two: correctness_reward takes the completions \
first, then the right answers.
return correctness_reward([completion], [answer]) == [1.0] == \
format_reward([completion]) or -1.0 | A wrong response costs a point. It earns \
nothing, and no more: 0.0.
whole and right => right | You judge the answer and not the form: no thinking, and \
several answers, are paid in full. Ask for format_reward([completion]) == [1.0] as well.
whole and right => whole | You judge the form and not the answer: a wrong number in \
the template is paid in full. Ask correctness_reward as well.
whole and right => True | Everything is paid. A list is true even as [0.0]: compare \
it with [1.0], or take the one entry with [0].
whole and right => whole or right | One of the two is enough for you. Only both \
together pay: `and`.
return format_reward([completion])[0] * is_correct(completion, answer) | The right \
answer in a broken form earns part of the reward. Here it is all or nothing: ask for \
format_reward([completion]) == [1.0].
return (format_reward([completion])[0] + is_correct(completion, answer)) / 2 | You \
add the two. The right form around a wrong answer earns half, for no work at all. \
Here only both together pay.
correctness_reward([completion], [answer]) == [1.0] => \
completion.rpartition("<answer>")[2].partition("</answer>")[0] == answer | You \
compare texts, so $1,200.00 is not 1200. Compare numbers: read_number(...) on both \
sides.
return float(gold_number(answer) in _numbers(completion)) | Any number of the \
response may be the right one, so listing many numbers pays. Judge one answer.
correctness_reward([completion], [answer]) == [1.0] => answer in \
completion.rpartition("<answer>")[2] | You ask whether the digits occur in the \
answer: 17 holds a 7, and `7 or 6` holds it too. Compare numbers.
return float(answer in completion) | You ask whether the digits occur somewhere: 17 \
holds a 7, and a list of all numbers holds every answer.
"""


@exercise("11.4")
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
response_mask(tokens[:, prompt_width:], eos) => response_mask(tokens, eos)[:, \
prompt_width:] | The prompt holds EOS too: it ends the user's message. You count it, \
and the response is over before it began. Count from prompt_width on.
torch.zeros_like => torch.ones_like | The prompt is True in your mask. Nobody chose \
those tokens: training them teaches the model to ask questions.
return response_mask(tokens, eos) | You ask the prompt as well: it is True up to its \
own EOS, and the response is over before it began. Count from prompt_width on.
response_mask(tokens[:, prompt_width:], eos) => (tokens[:, prompt_width:] == \
eos).cumsum(-1) == 0 | You drop the EOS of the response. Stopping is a choice of the \
policy: without it in the mask, it never learns to stop.
response_mask(tokens[:, prompt_width:], eos) => (tokens[:, prompt_width:] == \
eos).cumsum(-1) <= 1 | You keep everything before the second EOS. With a pad token of \
its own no second one comes, and the padding counts.
response_mask(tokens[:, prompt_width:], eos) => (n := (tokens[:, prompt_width:] == \
eos).long()).cumsum(0) - n == 0 | You count along batch: the EOS of one response ends \
another. Count along pos, the last axis.
response_mask(tokens[:, prompt_width:], eos) => response_mask(tokens[:, \
prompt_width:], eos); mask = ~mask | The other way round: this is True on the prompt \
and on the padding. True marks what the policy wrote.
return (tokens != 0) & (torch.arange(tokens.shape[1]) >= prompt_width) | You ask what \
a token is, not where it stands. Padding may be any token, and the policy may write \
0: only the first EOS behind the prompt decides.
response_mask(tokens[:, prompt_width:], eos) => True | You score the padding behind \
the response. Nobody chose it: stop after the first EOS.
response_mask(tokens[:, prompt_width:], eos) => tokens[:, prompt_width:] != eos | \
`tokens != eos` drops the EOS that the policy chose, and keeps padding that is \
another token.
return response_mask(tokens[:, prompt_width:], eos) | Your mask is as wide as the \
response. It has to be as wide as the row: put it behind `prompt_width` places that \
are False.
mask[:, prompt_width:] = => mask[:, prompt_width - 1:] = && tokens[:, prompt_width:] \
=> tokens[:, prompt_width - 1:] | You begin one place too early, with the last token \
of the prompt. The response begins at the index prompt_width: tokens[:, prompt_width:].
mask[:, prompt_width:] = => mask[:, prompt_width + 1:] = && tokens[:, prompt_width:] \
=> tokens[:, prompt_width + 1:] | You begin one place too late: the first token of \
the response stands at the index prompt_width.
response_mask(tokens[:, prompt_width:], eos) => response_mask(tokens[:, \
prompt_width:], eos); mask[:, prompt_width] = False | The first token of the response \
is missing: it stands at the index prompt_width, so ask for >= and not for >.
mask[:, prompt_width:] = => mask[:, prompt_width - 1 : -1] = | Off by one: your mask \
marks the logits that score a token, one place before it. Mark the token itself.
"""
