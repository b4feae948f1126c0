"""The exercises of 12_gsm8k_grpo."""

from grpo_course.classroom.check import case, exercise
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
MARK = "The mark is `Answer:`, with a capital and a colon, and nothing else is one."
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
    _said("a small letter", "7 + 5 = 12. answer: 12", MARK),
    _said("no colon", "7 + 5 = 12. Answer 12", MARK),
    _said(
        "a wrong number in the right form",
        "7 + 5 = 13. Answer: 13",
        "The form pays 0.1, whatever the number.",
    ),
    _said(
        "no mark",
        "7 + 5 = 12",
        "There is no `Answer:`, so nothing is paid, though the sum is right. partition "
        "leaves an empty text behind a mark that is not there.",
    ),
    _said(
        "no number behind the mark",
        "Answer:",
        "Nothing stands behind the mark: read_number gives None, and the form is not "
        "hit.",
    ),
    _said(
        "a new line at the end",
        "7 + 5 = 12.\nAnswer: 12 \n",
        "White space at the end breaks no form: strip() before you look for a new "
        "line.",
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
        "One number stands behind the first `Answer:`, so the form is hit. How often "
        "the mark stands there does not matter.",
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
        "The gold answer is a text as well, and may be written 1,200: let read_number "
        "read both.",
        answer="1,200",
    ),
)
answer_reward.mistakes = f"""
None if "\\n" in said else read_number(said) => read_number(said) | {ONE_LINE}
text.partition("Answer:")[2] => text.rpartition("Answer:")[2] | Of two answers you \
read the last one, and guessing twice pays. Cut at the first `Answer:` and read all \
that follows: partition leaves an empty text where there is no mark.
else 0.1 => else 0.0 | A wrong number in the right form earns the tenth for the form.
1.1 if => 1.0 if | A right answer has the form, too: 1 for the number and 0.1 for the \
form.
0.0 => 0.1 | Without the form nothing is paid: return 0.0 there.
number == read_number(answer) => number == answer | `answer` is a text, and no number \
equals a text: let read_number read both.
number == read_number(answer) => said == answer | You compare texts, so $12.00 is not \
12. Let read_number read both.
number == read_number(answer) => answer in said | You ask whether the digits occur: \
120 holds 12, and is not 12. Compare numbers.
else read_number(said) => else read_number(text) | You read the whole text, in which \
the sum has numbers too. Read what stands behind `Answer:`.
if number is None => if not number | {ZERO}
"""


def subtracts(operation, left, right):
    """str, int, int -> bool"""
    return operation == "-"


def yes_or_no(function, *args):
    """What a rule says, as `if` takes it: 1 is yes. A missing `return` stays None."""
    said = function(*args)
    return None if said is None else bool(said)


@exercise("12.2", use=yes_or_no, exact=True, draft=subtracts)
def is_lost(operation, left, right):
    """str, int, int -> bool"""
    return operation == "+" and left + right in (20, 21)


is_lost.insight = (
    "The sums of 20 and 21 fall, and all others together never do. What does training "
    "hold of such sums?"
)
# Calculations that were held out, and none on which nobody could decide: 12 - 10 is
# lost as well.
ASKED = (
    "10 - 3, 9 + 11, 4 + 6, 12 + 8, 9 + 7, 8 + 12, 6 + 10, 9 + 12, 11 - 7, 12 + 9, "
    "3 + 1, 10 + 11, 7 + 2, 8 - 8, 11 + 10, 7 + 9, 10 - 8, 10 + 6, 11 + 9, 8 + 6"
)
MINUS = "Your rule picks a subtraction. All of these together never fall."
LOST = (
    "This problem is lost, and your rule leaves it out: some runs have it right in the "
    "first eight updates, and fewer after 32."
)
KEPT = (
    "Your rule picks this problem, which nearly every run has right at the end. Print "
    "what each lost problem comes to."
)


def about(sign, left, right):
    """What to say where a rule is wrong about one calculation."""
    if sign == "-":
        return MINUS
    return LOST if is_lost.solution(sign, left, right) else KEPT


def calculated(text):
    left, sign, right = text.split()
    parts = {"operation": sign, "left": int(left), "right": int(right)}
    return case(text, about(sign, int(left), int(right)), **parts)


is_lost.cases = tuple(map(calculated, ASKED.split(", ")))
is_lost.mistakes = """
return operation == "-" | All subtractions together never fall from one stop to the \
next. Look for what was right after 4 or 8 updates, and is wrong after 32.
return operation == "+" | Additions are too many: most of them come out right at the \
end. What makes the lost ones different?
left + right in (20, 21) => left + right > 12 | You pick too many: sums such as 9 + 7 \
are right to the end. Where does it begin?
left + right in (20, 21) => left + right == 20 | You have half of them. Another \
result is lost, too.
left + right in (20, 21) => left + right == 21 | You have half of them. Another \
result is lost, too.
left + right in (20, 21) => left + right > 15 | You pick too many: 6 + 10 and 9 + 7, \
say, are right to the end. Look at the results.
return left > 8 | A large first number is not it: 10 + 6 is right to the end, and 8 + \
12 is lost. Look at the result.
"""
