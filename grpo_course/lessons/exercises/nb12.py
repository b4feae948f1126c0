"""The exercises of 12_gsm8k_grpo."""

from collections import Counter
from statistics import mode

from grpo_course.classroom.check import Case, case, exercise
from grpo_course.text.grader import read_number


def _said(description, text, hint="", answer="12"):
    return case(description, hint, text=text, answer=answer)


@exercise("12.1")
def answer_reward(text, answer):
    """str, str -> float"""
    said = text.partition("Answer:")[2].strip()
    number = None if "\n" in said else read_number(said)
    if number is None:
        return 0.0
    return 1.1 if number == read_number(answer) else 0.1


AS_NUMBERS = "As texts they differ, as numbers they are one: let read_number read both."
ONE_LINE = (
    "Behind the number the model went on, to a question of its own. Where a further "
    "line follows, strip() aside, there is no answer."
)
ZERO = (
    "0 is a number, and the right answer to 7 - 7, but `not number` takes it for "
    "None. Ask whether it `is None`."
)
LAST = (
    "Two answers stand there, on two lines, so there is none. A regular expression "
    "may find the last one: cut at the first `Answer:`."
)
TWICE = (
    "Two numbers are named, so none is: cut at the first `Answer:`, and let "
    "read_number see all that follows. Otherwise guessing twice pays."
)
answer_reward.insight = (
    "The tenth is for the form alone. It gives a model that gets no sum right "
    "something to climb, and it is too small to be worth more than a right answer."
)
answer_reward.cases = (
    _said("right", "7 + 5 = 12. Answer: 12"),
    _said(
        "a wrong number in the right form",
        "7 + 5 = 13. Answer: 13",
        "The form pays 0.1, whatever the number.",
    ),
    _said(
        "no mark",
        "7 + 5 = 12",
        "There is no `Answer:`, so nothing is paid, though the sum is right. partition leaves an empty text behind a mark that is not there.",
    ),
    _said(
        "no number behind the mark",
        "Answer:",
        "Nothing stands behind the mark: read_number gives None, and the form is not hit.",
    ),
    _said(
        "a new line at the end",
        "7 + 5 = 12.\nAnswer: 12 \n",
        "White space at the end breaks no form: strip() before you look for a new line.",
    ),
    _said("a full stop at the end", "Answer: 12.", AS_NUMBERS),
    _said("12.00 dollars", "Answer: $12.00", AS_NUMBERS),
    _said("a right zero", "7 - 7 = 0. Answer: 0", ZERO, answer="0"),
    _said("a wrong zero", "7 + 5 = 0. Answer: 0", ZERO),
    _said(
        "the right digits below zero", "Answer: -12", "-12 is not 12: leave the sign."
    ),
    _said("half a unit more", "Answer: 12.5", "12.5 is not 12: round nothing."),
    _said(
        "another number that has its digits",
        "Answer: 120",
        "120 is not 12: compare numbers, not texts.",
    ),
    _said("two answers, the last one right", "Answer: 3. Answer: 12", TWICE),
    _said("two answers, the first one right", "Answer: 12. Answer: 3", TWICE),
    _said("two numbers", "Answer: 12 or 13", TWICE),
    _said(
        "the mark twice, and one number",
        "Answer: Answer: 12",
        "One number stands behind the first `Answer:`, so the form is hit. How often the mark stands there does not matter.",
    ),
    _said(
        "two answers on two lines, the last one right", "Answer: 5\nAnswer: 12", LAST
    ),
    _said(
        "two answers on two lines, the first one right", "Answer: 12\nAnswer: 5", LAST
    ),
    _said("it goes on", "Answer: 12\nQuestion: What is next?", ONE_LINE),
    _said(
        "a gold answer that is written out",
        "Answer: 1200",
        "The gold answer is a text as well: read_number(answer).",
        answer="1,200",
    ),
)
answer_reward.mistakes = r"""
None if "\n" in said else read_number(said) => read_number(said) | Behind the number the model went on, to a question of its own. Where a further line follows, strip() aside, there is no answer.
text.partition("Answer:") => ("", *text.rpartition("Answer:")[1:]) if "Answer:" in text else ("", "", "") | Two numbers are named, so none is: cut at the first `Answer:`, and let read_number see all that follows. Otherwise guessing twice pays.
text.partition("Answer:")[2] => text.rpartition("Answer:")[2] | Of two answers you read the last one, and guessing twice pays. Cut at the first `Answer:` and read all that follows: partition leaves an empty text where there is no mark.
else 0.1 => else 0.0 | A wrong number in the right form earns the tenth for the form.
1.1 if => 1.0 if | A right answer has the form, too: 1 for the number and 0.1 for the form.
0.0 => 0.1 | Without the form nothing is paid: return 0.0 there.
number == read_number(answer) => said == answer | You compare texts, so $12.00 is not 12. Let read_number read both.
number == read_number(answer) => str(number) == answer | The gold answer is a text as well, and may be written 1,200: let read_number read both.
number == read_number(answer) => answer in said | You ask whether the digits occur: 120 holds 12, and is not 12. Compare numbers.
return 1.1 if answer in text else 0.1 | You ask whether the digits occur anywhere: in the sum, in 120. Read the number behind `Answer:` and compare numbers.
else read_number(said) => else read_number(text) | You read the whole text, in which the sum has numbers too. Read what stands behind `Answer:`.
if number is None => if not number | 0 is a number, and the right answer to 7 - 7, but `not number` takes it for None. Ask whether it `is None`.
None if "\n" in said else read_number(said) => read_number(said.split("\n")[0]) | Behind the number the model went on, to a question of its own. Where a further line follows, strip() aside, there is no answer.
1.1 if number == => 1.1 if number != | The signs are turned: the right number earns 1.1, any other one 0.1.
"""


@exercise("12.2")
def vote(answers):
    """answers to each problem, a list of lists -> one answer for each, a list"""
    winners = []
    for given in answers:
        counted = Counter(answer for answer in given if answer is not None)
        winners.append(counted.most_common(1)[0][0] if counted else None)
    return winners


def _given(given):
    return [answer for answer in given if answer is not None]


NO_VOTE = (
    "None is a response without an answer: it has no vote. Leave it out before you "
    "count."
)
EARLIEST = (
    "Two answers come equally often there. The one that came first wins: "
    "Counter.most_common keeps the order in which it met them."
)
NOBODY = (
    "Where nobody answered, there is nothing to count: return None for that problem, "
    "and go on."
)


def _votes(description, *answers, hint=""):
    return Case(description, {"answers": list(answers)}, hint)


# Ties stand in no order that sorting, or a set, could find.
TIES = [["5", "12", "12", "5"], ["9", "4"], ["30", "7", "8"], ["8", "b", "30"]]

vote.insight = (
    "Eight samples and a count: no weight moves. It helps where the right answer is "
    "the most frequent one already."
)
vote.cases = (
    _votes("one answer comes most often", ["7", "8", "8", "7", "8"]),
    _votes("two problems", ["3", "3", "5"], ["9", "4", "4"]),
    _votes("the first is alone", ["1", "6", "6", "2"]),
    _votes("the most frequent is the smallest", ["20", "4", "4", "30"]),
    _votes("equally many", ["12", "5", "5", "12"], ["3", "4"], hint=EARLIEST),
    _votes("equally many, the first not the smallest", *TIES, hint=EARLIEST),
    _votes("most are without an answer", [None, "5", None, None], hint=NO_VOTE),
    _votes("as many without as with", [None, "5", "5", None], hint=NO_VOTE),
    _votes("nobody answered", [None, None, None], ["5"], hint=NOBODY),
    _votes("all the same", ["11", "11", "11"]),
    _votes(
        "the answer zero, and an empty text",
        ["0", "0", "1"],
        ["", "", "2"],
        hint="An empty text is an answer like others. Leave out what `is None`, and "
        "nothing else.",
    ),
)
vote.mistakes = """
for answer in given if => for answer in sorted(map(str, given)) if answer != "None" \
and | Of two that come equally often you take the smaller one. The one that came \
first wins: count in the order given.
winners.append(counted.most_common(1)[0][0] if counted else None) => return \
counted.most_common(1)[0][0] if counted else None | You return the answer to the \
first problem alone: is the `return` inside the loop? Return a list, with one answer \
for each problem.
return [given[0] for given in answers] | You take the first answer, whatever the \
others are. Count them.
(answer for answer in given if => (answer for given in answers for answer in given if \
| You count over all problems. Each problem has a vote of its own.
[0][0] if counted else None => [0] if counted else None | most_common gives pairs of \
an answer and its count. Return the answer alone.
[0][0] if counted else None => [0][1] if counted else None | That is how often it \
came. Return the answer, the first of each pair.
if counted else None => if counted and 2 * counted.most_common(1)[0][1] > len(given) \
else None | You ask for more than half. The most frequent answer wins, however few \
gave it.
for given in answers: => for given in zip(*answers): | You count across the problems. \
answers[i] holds all answers to one problem already: no zip.
winners.append(counted.most_common(1)[0][0] if counted else None) => winners = \
counted.most_common(1)[0][0] if counted else None | You return the answer to the last \
problem alone. Return a list, with one answer for each problem.
return [mode(_given(given)) for given in answers] | Where nobody answered, there is \
nothing to count: mode of nothing is an error. Return None for that problem, and go on.
return [max(_given(given), default=None) for given in answers] | That is the largest \
of the answers, not the most frequent one.
[0][0] if counted else None => [0][0] | Where nobody answered, there is nothing to \
count: return None for that problem, and go on.
return [max(_given(given), key=given.count) for given in answers] | Where nobody \
answered, there is nothing to count: max needs default=None there.
"""
