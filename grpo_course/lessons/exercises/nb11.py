"""The exercises of 11_gsm8k_data."""

import torch

from grpo_course.classroom.check import case, exercise
from grpo_course.sampling import response_mask
from grpo_course.text.grader import read_number


def text_case(description, text, hint=""):
    """What a language model wrote."""
    return case(description, hint, text=text)


@exercise("11.1")
def stated(text):
    """str -> number, or None"""
    said = text.partition("Answer:")[2].strip()
    return None if "\n" in said else read_number(said)


stated.insight = "A text that goes on in a new line after its answer is not paid."
# Cases where a known mistake gives a wrong number stand before those where it gives
# None, which says less.
stated.cases = (
    text_case("the form", "2 + 4 = 6. Answer: 6"),
    text_case("a full stop", "11 + 11 = 22 after m. Answer: 22."),
    text_case(
        "the text goes on",
        "Maia found 9 apples. Answer: 19\nMia lost all of them.",
        "After the 19 the text goes on in a new line, so it is not one line.",
    ),
    text_case(
        "the text goes on with a number",
        "Answer: 3\nMia still left 11 coins",
        "The text goes on in a new line, so it is not one line.",
    ),
    text_case(
        "two answers",
        "Sue got 2 more. Answer: 5. Answer: 6",
        "What counts begins after the first mark, and there stand two numbers.",
    ),
    text_case("no mark", "2 + 4 = 6", "Without `Answer:` nothing is stated."),
    text_case("the mark in small letters", "The answer: 6", "The mark is `Answer:`."),
    text_case(
        "the mark without its colon", "Answer 6", "The mark is `Answer:`, with a colon."
    ),
    text_case("cut off", "12 - 4 = 6 apples left. Answer:"),
    text_case(
        "a new line at the end",
        "2 + 4 = 6. Answer: 6\n",
        "White space around the line changes nothing: strip() first.",
    ),
    text_case(
        "a new line after the mark",
        "Answer:\n6",
        "White space around the line changes nothing: strip() first.",
    ),
    text_case(
        "lines before the mark",
        "2 + 4\n= 6\nAnswer: 6",
        "Only what stands after the mark has to be one line.",
    ),
    text_case("no white space", "Answer:6"),
    text_case("a price", "Answer: $1,200.00"),
    text_case("a unit", "Answer: 6 apples"),
    text_case("a minus", "Answer: -3"),
    text_case(
        "a zero",
        "4 - 4 = 0. Answer: 0",
        "The text states 0, which is a number; None means that it states none.",
    ),
    text_case("a half", "Answer: 2.5"),
    text_case("a calculation", "Answer: 2 + 4 = 6"),
    text_case("a choice", "Answer: 6 or 7"),
    text_case("no number", "Answer: six"),
    text_case(
        "a second mark and no second number",
        "2 + 4 = 6. Answer: 6. Answer:",
        "`read_number` finds one number after the first mark, in one line.",
    ),
)
stated.mistakes = """
text.partition("Answer:")[2] => text.rpartition("Answer:")[2] | You take what stands \
after the last mark, or the whole text where there is none. With two marks a text \
states none: read from the first one on, with partition.
text.partition("Answer:")[2] => text | You read the whole text. What counts stands \
after `Answer:`.
None if "\\n" in said else read_number(said) => read_number(said) | You read on into \
the next line. An answer is one line: return None if there are more.
.strip() => | You look for a new line before you strip(), and one at the end is only \
white space.
if "\\n" in said => if "\\n" in text.strip() | You refuse a text that has new lines \
before its `Answer:`. Look at what stands after it.
None if "\\n" in said else read_number(said) => \
read_number(said.partition("\\n")[0]) | You leave out what stands in the next line, \
and a text that goes on after its answer states none.
read_number(said) => read_number(said.split(" ")[0]) | You read the first word \
after the mark. Give `read_number` the whole line, and it says whether there is one \
number in it.
read_number(said) => said | You return a text. Give it to `read_number`.
None if "\\n" in said else read_number(said) => (None if "\\n" in said else \
read_number(said)) or 0 | Where there is no number you return 0. \
That is an answer: return None.
"""


@exercise("11.2")
def completion_mask(tokens, begins, eos):
    """int [batch pos], bool [batch pos], int -> bool [batch pos]"""
    mask = torch.zeros_like(begins)
    for row, start in begins.nonzero():
        mask[row, start:] = response_mask(tokens[row, start:], eos)
    return mask


def _tokens_case(description, tokens, starts, hint="", *, eos=2):
    begins = torch.zeros(len(tokens), len(tokens[0]), dtype=torch.bool)
    begins[range(len(tokens)), starts] = True
    return case(description, hint, tokens=tokens, begins=begins, eos=eos)


completion_mask.insight = (
    "Who builds the row knows where the policy begins. It decides where it ends."
)
completion_mask.cases = (
    _tokens_case("pad is 0", [[5, 2, 1, 6, 7, 2, 0], [0, 5, 1, 2, 0, 0, 0]], [3, 3]),
    _tokens_case(
        "pad is EOS",
        [[5, 2, 1, 6, 7, 2, 2], [2, 5, 1, 2, 2, 2, 2]],
        [3, 3],
        "Padding may be EOS, too. Only the first EOS after the beginning was chosen.",
    ),
    _tokens_case(
        "prompts of two lengths",
        [[5, 2, 6, 8, 7, 2, 0], [6, 2, 8, 7, 7, 2, 0]],
        [4, 2],
        "Each row has a beginning of its own.",
    ),
    _tokens_case(
        "others write after the end",
        [[5, 2, 6, 2, 8, 7, 2, 9], [5, 2, 8, 6, 2, 7, 2, 9]],
        [2, 3],
        "After the first EOS of the policy others write, whatever they end with.",
    ),
    _tokens_case(
        "cut off, no EOS",
        [[0, 5, 2, 6, 7, 8, 9], [1, 6, 2, 5, 6, 7, 8]],
        [3, 4],
        "The policy was cut off before any EOS: all its tokens count.",
    ),
    _tokens_case(
        "the policy wrote token 0",
        [[5, 2, 1, 6, 0, 7, 2], [5, 2, 1, 0, 2, 0, 0]],
        [3, 3],
        "A 0 before the EOS was written: only the place of the first EOS decides.",
    ),
    _tokens_case("EOS is 9", [[5, 9, 6, 2, 9, 0], [5, 9, 9, 0, 0, 0]], [2, 2], eos=9),
    _tokens_case("EOS is 0, and pads", [[1, 5, 0, 6, 2, 7, 0, 0]], [3], eos=0),
)
completion_mask.mistakes = """
return response_mask(tokens, eos) | This is the mask of notebook 09, which ends with \
the first EOS of the row. Begin where the policy begins: tokens[row, start:].
return response_mask(tokens, eos) & (begins.cumsum(-1) > 0) | Your mask ends with the \
first EOS of the row, and that may stand in the prompt. Look for it in \
tokens[row, start:].
response_mask(tokens[row, start:], eos) => (tokens[row, start:] == eos).cumsum(-1) \
== 0 | You drop the EOS. Stopping is a choice of the policy, too, so the first EOS \
after its beginning counts.
return (tokens != eos) & (begins.cumsum(-1) > 0) | You drop the EOS and keep what \
stands after it. Stopping is a choice of the policy, so its first EOS counts, and \
nothing after it.
return (tokens != 0) & (begins.cumsum(-1) > 0) | You ask what a token is, not where it \
stands. Padding may be any token, and the policy may write 0: only the first EOS \
after the beginning decides.
response_mask(tokens[row, start:], eos) => True | You mark what stands after the EOS. \
The policy did not choose it: stop after its first EOS.
begins.nonzero() => enumerate(begins[:1].int().argmax(-1).expand(len(tokens))) | You \
begin each row where the first row begins. Each row has a True of its own in `begins`.
mask[row, start:] => mask[row, start - 1:] && tokens[row, start:] => \
tokens[row, start - 1:] | You begin one place too early, with the last token before \
the policy's. Its first token stands where `begins` is True.
mask[row, start:] => mask[row, start + 1:] && tokens[row, start:] => \
tokens[row, start + 1:] | You begin one place too late. The policy's first token, \
where `begins` is True, was chosen, too.
"""
