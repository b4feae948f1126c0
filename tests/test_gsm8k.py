"""The grader on hostile answers, rewards, made problems, the real data, the task."""

import gzip
import json
import os
import random
import re
from dataclasses import asdict
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grpo_course.text.grader import (
    LONGEST_ANSWER,
    LONGEST_NUMBER,
    READINGS,
    correctness_reward,
    gold_number,
    is_correct,
    is_leniently_correct,
    last_number,
    length_reward,
    lenient_reward,
    read_number,
)
from grpo_course.text.gsm8k import (
    FORMS,
    GSM8K,
    SHORT_SYSTEM_PROMPT,
    SYSTEM_PROMPT,
    demonstration,
    load_gsm8k,
    load_run_split,
    with_slip,
)
from grpo_course.text.responses import (
    TAGS,
    chat_messages,
    extract_answer,
    format_reward,
    in_template,
)
from grpo_course.text.stories import (
    HELD_OUT_SCENES,
    SPLITS,
    TRAINING_SCENES,
    WordProblem,
    compute,
    fact_key,
    make_problems,
    pool_of,
    problem_key,
    work_out,
)
from grpo_course.text.training import GRPOConfig, load_problems, make_task

FOLDER = os.environ.get("GSM8K_DIR", "")
MEGABYTE = 1_000_000
GOOD = in_template("3+4=7", "7")


# What stands in the answer tag, where 72 is right, beside READINGS and SIBLINGS.
SAYS_72 = [
    " 72 ", "\n72\n", "72.", "072", "#### 72", "72" + " " * MEGABYTE,
    "72m", "72 M&Ms", "$72/hour",  # a unit, not a factor: 72m is metres
    # after an equals sign only the result counts
    "72 = 72.0", "70+2=72=72", "9+9=18\n18*4=72", "1,200 - 1,128 = 72",
    "work of Anders in Oregon = 72",
]  # fmt: skip
SAYS_NO_72 = [
    "72.5", "7 2", "720", "7", "-72", "x-72", "seventy-two", ".", "NaN", "Infinity",
    "__import__('os').getpid()", "36*2", "72 " * MEGABYTE,
    "- $72", "-$ 72", "-> 72", "\u00b172", "x = - 72",
    # several answers, or an expression
    "72 or 72", "72, that is 72.0", "72 and 72 or 73", "72 and 72 + 72", "70 + 2",
    "72 x 72", "72 / 72", "(72)(72)", "72 72", "72 times 72", "72 apples and 72 pears",
    # a sign or a word makes another number of it, or seems to
    "72^n", "n^72", "x + 72", "72 + x", "(72)!", "\u221a(72)", "72million",
    "72-thousand", "72 hundred", "72 dozen", "72 K", "$72M",
    # a second guess before the equals sign
    "72=x", "x = 71 or x = 72", "71or x=72", "x = 71 and y = 72", "a=71,b=72",
    "71,72=72", "a=71; b=72", "oranges and pears = 72",
]  # fmt: skip
# The same for other right answers; \u2013 is a dash.
SAYS = [
    ("72.50", "72.5", True), ("-72 -72", "-72", False), ("x = -72", "-72", True),
    ("\u20133", "-3", True), ("\u20133", "3", False), ("--3", "3", False),
    ("3", "-3", False), ("+-3", "-3", False), ("+3", "3", True), ("-0", "0", True),
    ("-.5", "-0.5", True), ("-1/2", "-0.5", True), ("1200", "1,200", True),
    ("1,200,000", "1200000", True), ("12,00,000", "1200000", False),
    ("5$", "5", True), ("5 km/h", "5", True), ("-$-5", "-5", False),
    ("Rs.500", "500", True), ("50 cents", "0.5", False), ("50%", "0.5", False),
    ("7x2", "7", False), ("7" * MEGABYTE, "7", False),
    ("0" * MEGABYTE + "7", "7", False), ("6/3", "2", True), ("1/3", "0.333", False),
]  # fmt: skip
SAYS += [(said, "72", True) for said in SAYS_72]
SAYS += [(said, "72", False) for said in SAYS_NO_72]
# Whole completions: where is the answer? The last one counts, and thinking is none.
ANSWERS_72 = [
    "<answer>72</answer>", "<think>3</think><answer>72</answer>",
    "<think>3<answer>72</answer>", "<answer>1</answer><answer>72</answer>",
    "<answer>72</answer> or <answer>", "<answer>72</answer></answer>",
    "<answer>1<answer>72</answer>", "<answer><answer>72</answer></answer>",
    "<answer>72</answer> I mean 73.", "<think></think></think><answer>72</answer>",
    "<answer>" * 100_000 + "72</answer>", "<answer>72</answer>" * 50_000,
]  # fmt: skip
ANSWERS_NO_72 = [
    "72", "#### 72", "<answer>72", "72</answer>", "</answer>72<answer>",
    "<Answer>72</Answer>", "< answer >72</ answer >", "<answer>72</answer",
    "<answer>72</answer><answer>1</answer>", "<answer>72</answer><answer></answer>",
    "<think><answer>72</answer></think>", "<answer>72</answer></think>",
    "<think><answer>72</answer></think><answer>1</answer>",
    "<answer>" * 100_000, "",
]  # fmt: skip
LENIENTLY_72 = [
    "72", "The answer is $72.00.", "#### 72", "<answer>72</answer>", "70+2=72",
    "It is 71-72", "72" + " so" * MEGABYTE, "It is 71\u201372", "- 72",
]  # fmt: skip
LENIENTLY_NO_72 = ["72 of 100", "1" * MEGABYTE, "no number", "-72", "\u201372", "1,72"]


def test_the_number_in_the_tag():
    for said, gold, right in SAYS:
        text = f"<think>1</think>\n<answer>{said}</answer>"
        assert is_correct(text, gold) is right, (said[:40], gold)
        assert (read_number(said) == gold_number(gold)) is right or len(said) > 200


# Beside READINGS: siblings, read (text, value) or unread.
SIBLINGS = [
    *((text, -5) for text in (
        "-\u20ac5", "$\u22125", "\u2212$5", "\u22125", "\u20155", "\ufe635", "\u207b5",
        "\uff0d5", "\u20125", "(-5)", "**-5**", r"-\$5", r"$\boxed{-5}$",
    )),
    *((text, 72) for text in (
        "72...", "=> 72", "__72__", r"\(72\)", r"\[ 72 \]", "$$72$$", r"72\%", r"\$72",
        "72\u00a0km", "144/2", "(72)", "72 feet.",
    )),
    *((text, None) for text in (
        r"\frac123", r"\frac{1}{2}3", r"\frac{x}{2}", r"\frac{3+4}{2}", r"\binom{2}{2}",
        r"\frac{1}{-2}", "3 4/2", "1,00,00", "10{,}00", "10 000 000", "1\u00a0000",
        "1_000", "5'10", "25 m2", "72^2", "7\u00b22", "2^3", "10**3", "1.5e+03",
        "1e3.5", "7.2\u00d710^1", r"2^{3}", "\uff17\uff12", "7\uff12", "\uff127", "72k",
        "72M", "5 lakh", "72 and a half", "minus 5", "negative 5", "5...72", "-(5)",
        "-**5**", "-$$5$$", "-USD5", "-US$5", "US$-5", "\u221a4", "&minus;5", "-..5",
        "1.234.567", "3,5", "5/0", "--5", "0x48", "3/4/2024", r"\pm 5", "2\u00bd",
    )),
]  # fmt: skip
# Alone they are no answer, but the last number of a text they hold whole.
HOLD_ONE = {"5 or 7", "5-7", "9+9", "- 5", "5!", r"\pm 5"}


@pytest.mark.parametrize(("text", "number"), READINGS + tuple(SIBLINGS))
def test_what_is_read_how_and_nothing_is_read_in_part(text, number):
    assert read_number(text) == number
    assert is_correct(f"<answer>{text}</answer>", "5") is (number == 5)
    if text not in HOLD_ONE:
        assert last_number(text) == last_number(f"so it is {text} in all") == number


def test_where_the_answer_stands_and_the_last_number():
    assert [t[:50] for t in ANSWERS_72 if not is_correct(t, "72")] == []
    assert [t[:50] for t in ANSWERS_NO_72 if is_correct(t, "72")] == []
    assert [t[:50] for t in LENIENTLY_72 if not is_leniently_correct(t, "72")] == []
    assert [t[:50] for t in LENIENTLY_NO_72 if is_leniently_correct(t, "72")] == []


NUMBERS = st.integers(-(10**9), 10**9)
DECIMALS = st.decimals(-(10**6), 10**6, places=3, allow_nan=False)
HOSTILE = (
    st.text(alphabet=st.sampled_from("0123456789.,-/=$%eE<>answerthik ½²\u2212٣\n"))
    | st.text()
)
TAGGED = st.lists(st.sampled_from([*TAGS, "7", "-1,0", " "])).map("".join)


@given(DECIMALS)
def test_decimals_are_compared_exactly(number):
    assert read_number(f"{number:,f}") == Fraction(str(number))
    assert read_number(f"{number:f}00") == read_number(f"{number:f}")


JOINS = [" or ", " and ", ", ", "; ", "\nor "]
BETWEEN = ["+", "-", "\u2013", "*", "/", "^", ":", "x", ", "]


@given(NUMBERS, NUMBERS, st.sampled_from(JOINS), st.sampled_from(BETWEEN))
def test_two_numbers_are_no_answer(a, b, join, between):
    for way in (
        f"{a} and {b}",
        f"x = {a}{join}x = {b}",
        f"{a}{join}x = {b}",
        f"{a}{between}({a})",
        f"{a} {between} {a}",
    ):
        assert read_number(way) is None
    assert read_number(f"x = {a} = {b}") == b


# A number behind or before it would be another: minus 7, 7 million.
NUMERAL_WORDS = re.compile(
    "(?i)minus|negative|half|hundred|thousand|lakh|crore|illion|n"
)


def says_no_number(text):
    return not (any(map(str.isnumeric, text)) or NUMERAL_WORDS.search(text))


@pytest.mark.slow
@given(st.text(max_size=300).filter(says_no_number))
@example("\0")
def test_the_last_number_is_found_behind_any_text(text):
    assert last_number(f"5 {text} 7") == 7
    assert last_number(f"7 {text}") == 7


@given(HOSTILE | TAGGED, HOSTILE, TAGGED)
def test_nothing_raises_and_only_what_follows_the_thinking_answers(text, inside, after):
    for each in (text, in_template(text, inside)):
        assert is_correct(each, "7") in (True, False)
        assert is_leniently_correct(each, "7") in (True, False)
    alone = extract_answer("</think>" + after)
    assert extract_answer(text + "</think>" + after) == alone


def test_what_is_read_closely_is_short():
    """The pattern runs on bounded text only, so its own speed does not matter."""
    assert read_number("7" + " " * LONGEST_ANSWER) is None
    assert read_number("7" * LONGEST_NUMBER) == int("7" * LONGEST_NUMBER)
    assert read_number("7" * (LONGEST_NUMBER + 1)) is None
    assert last_number("7" * (LONGEST_NUMBER + 1)) is None


def chat(*texts):
    return [{"role": "assistant", "content": text} for text in texts]


@pytest.mark.parametrize(
    "reward", [correctness_reward, lenient_reward, format_reward, length_reward]
)
def test_lists_in_lists_of_floats_out_as_trl_calls_them(reward):
    texts = [GOOD, "no", ""]
    more = {"prompts": ["?"] * 3, "answer": ["7"] * 3, "trainer_state": object()}
    rewards = reward(completions=texts, **more)
    assert isinstance(rewards, list) and len(rewards) == 3
    assert all(type(r) is float for r in rewards)
    assert reward(completions=[*map(chat, texts)], **more) == rewards
    assert reward(completions=[], **(more | {"answer": []})) == []
    assert reward.__name__ == reward.__qualname__  # TRL names its metrics by it


def test_each_completion_has_its_own_answer():
    assert correctness_reward([GOOD, GOOD, "7"], ["7", "8", "7"]) == [1.0, 0.0, 0.0]
    assert lenient_reward([GOOD, GOOD, "7"], ["7", "8", "7"]) == [1.0, 0.0, 1.0]
    parts = [chat("<answer>", "7</answer>"), chat(None)]
    assert correctness_reward(parts, ["7", "7"]) == [1.0, 0.0]


def test_format_pays_for_each_tag_and_for_good_order():
    paid = {
        0.0: ["", "7", GOOD + GOOD, "<think>" * 1000],
        0.2: ["<think>", "</answer>"],
        0.4: ["<think>3+4=7</think>7", "<answer>7</answer>",
              GOOD + "<answer>7</answer>"],
        0.6: ["<think>3+4=7<answer>7</answer>"],
        0.8: [GOOD + "!", "Well. " + GOOD, GOOD.replace("><", ">so<"),
              in_template("", "7"), in_template("3+4=7", " "),
              "<answer>7</answer><think>3+4=7</think>",
              "<think><answer>7</answer></think>", "</answer><answer></think><think>",
              "<think>3</answer></think><answer>7"],
        1.0: [GOOD, f"\n {GOOD} \n", GOOD.replace("><", ">\n<")],
    }  # fmt: skip
    for share, texts in paid.items():
        assert format_reward(texts) == pytest.approx([share] * len(texts)), share


def test_length_costs_nothing_then_a_line_then_one():
    texts = ["x" * n for n in (0, 10, 15, 20, 1000)]
    assert length_reward(texts, free=10, most=20) == [0.0, 0.0, -0.5, -1.0, -1.0]
    texts = ["x" * n for n in (800, 1200, 1600)]
    assert length_reward(texts) == [0.0, -0.5, -1.0]


HELD_OUT_SPLITS = ("validation", "unseen_problems", "unseen_facts")


def every_problem(pool):
    """Operations and operands of every problem of a pool, by enumeration."""
    found = []
    for steps in (1, 2):
        for kind in product("+-", repeat=steps):
            for numbers in product(range(1, 10), repeat=steps + 1):
                results = [compute(*fact) for fact in work_out(kind, numbers)]
                if min(results) >= 0 and pool_of(kind, numbers) == pool:
                    found.append((kind, numbers))
    return found


@pytest.mark.parametrize("split", SPLITS)
def test_same_arguments_same_problems(split):
    first, again = (make_problems(split, 20, seed=3) for _ in range(2))
    assert first == again
    assert first != make_problems(split, 20, seed=4)
    assert first[:5] == make_problems(split, 5, seed=3)
    kinds = {problem.kind for problem in make_problems(split, 500, seed=0)}
    assert kinds == {"+", "-", "++", "+-", "-+", "--"}


@pytest.mark.parametrize("split", SPLITS)
def test_solution_and_answer_are_right(split):
    for problem in make_problems(split, 300, seed=0, operations="+-*"):
        expression = str(problem.operands[0])
        for sign, number in zip(problem.operations, problem.operands[1:], strict=True):
            expression = f"({expression}{sign}{number})"
        assert int(problem.answer) == eval(expression) >= 0
        *lines, last = problem.solution.split("\n")
        assert last == f"#### {problem.answer}"
        for line in lines:
            left, mark, right = re.fullmatch(r"(.+)=<<(.+)>>(\d+)", line).groups()
            assert mark == f"{left}={right}" and eval(left) == int(right)
        numbers = [int(number) for number in re.findall(r"\d+", problem.question)]
        assert sorted(numbers) == sorted(problem.operands)


def test_splits_share_no_calculation_and_no_held_out_fact():
    """By enumeration, not by the rule that made the splits."""
    pools = {s: every_problem(s) for s in ("train", *HELD_OUT_SPLITS)}
    keys = [{problem_key(*problem) for problem in pool} for pool in pools.values()]
    assert all(keys) and sum(map(len, keys)) == len(set().union(*keys))
    for split in HELD_OUT_SPLITS:
        made = {p.group for p in make_problems(split, 300, seed=1)}
        assert made <= {problem_key(*problem) for problem in pools[split]}
    seen = [p for split in pools if split != "unseen_facts" for p in pools[split]]
    known = {fact_key(fact) for problem in seen for fact in work_out(*problem)}
    for problem in make_problems("unseen_facts", 500, seed=2):
        assert any(fact_key(fact) not in known for fact in problem.facts)
    assert fact_key((3, "+", 4)) == fact_key((4, "+", 3))


def test_unseen_phrasings_are_training_problems_in_other_sentences():
    training = {problem_key(*problem) for problem in every_problem("train")}
    shape = re.compile(r"\d+")
    seen = {shape.sub("N", p.question) for p in make_problems("train", 5000, seed=0)}
    for problem in make_problems("unseen_phrasings", 300, seed=0):
        assert problem.group in training
        assert shape.sub("N", problem.question) not in seen


def test_held_out_scenes_have_no_sentence_but_only_words_of_training():
    def sentences(scenes):
        return {
            each for scene in scenes for told in asdict(scene).values() for each in told
        }

    def words(told):
        return set(re.findall(r"\w+", " ".join(told).lower()))

    told, held_out = sentences(TRAINING_SCENES), sentences(HELD_OUT_SCENES)
    assert not held_out & told and words(held_out) <= words(told)


SHARES = {"full": 1.0, "no_tags": 0.0, "no_answer_tag": 0.4, "no_think_tag": 0.4}


@pytest.mark.parametrize("form", FORMS)
def test_demonstrations_are_right_and_lack_what_their_form_says(form):
    problems = make_problems("train", 100, seed=0)
    texts = [demonstration(problem, form) for problem in problems]
    answers = [problem.answer for problem in problems]
    tagged = form in ("full", "no_think_tag")
    assert correctness_reward(texts, answers) == [float(tagged)] * 100
    assert lenient_reward(texts, answers) == [1.0] * 100
    assert format_reward(texts) == [pytest.approx(SHARES[form])] * 100


def test_thinking_has_no_marks_and_no_final_line():
    solution = "In May 48/2 = $<<48/2=24>>24.\nSo 48+24 = <<48+24=72>>72.\n#### 72"
    for worked in (solution, "In May 48/2 = $24.\nSo 48+24 = 72."):
        said = demonstration(WordProblem("?", "72", worked), "no_tags")
        assert said == "In May 48/2 = $24.\nSo 48+24 = 72.\n72"


def test_the_system_prompts():
    example = SYSTEM_PROMPT.partition("boxes hold?\n")[2]
    assert format_reward([example]) == correctness_reward([example], ["36"]) == [1.0]
    user = {"role": "user", "content": "How many?"}
    assert chat_messages("How many?", None) == [user]
    system = {"role": "system", "content": SHORT_SYSTEM_PROMPT}
    assert chat_messages("How many?", SHORT_SYSTEM_PROMPT) == [system, user]


ROW = {"question": "How many?", "answer": "3*400 = <<3*400=1200>>1,200\n#### 1,200"}


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write rows or lines as a split of GSM8K, where GSM8K_DIR is not set."""
    monkeypatch.delenv("GSM8K_DIR", raising=False)

    def written(split, *rows):
        lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
        return tmp_path

    return written


def rows_of(problems):
    return [{"question": p.question, "answer": p.solution} for p in problems]


def test_question_solution_and_answer_are_apart(write):
    made = make_problems("train", 20, seed=0)
    first, *others = load_gsm8k("train", write("train", ROW, *rows_of(made)))
    assert first == WordProblem(ROW["question"], "1,200", ROW["answer"])
    assert first.kind == "" and first.facts == ()
    assert others == [WordProblem(p.question, p.answer, p.solution) for p in made]


def test_file_folder_and_variable_give_the_same_and_path_goes_first(write, monkeypatch):
    folder = write("test", ROW)
    marked = b"\xef\xbb\xbf" + json.dumps(ROW).encode()  # as editors on Windows do
    (folder / "test.jsonl").write_bytes(marked)
    by_file, by_folder = (
        load_gsm8k("test", p) for p in (folder / "test.jsonl", folder)
    )
    monkeypatch.setenv("GSM8K_DIR", str(folder))
    assert by_file == by_folder == load_gsm8k("test") and len(by_file) == 1
    monkeypatch.setenv("GSM8K_DIR", str(folder / "elsewhere"))
    assert load_gsm8k("test", folder) == by_file


def test_the_hub_is_asked_without_path_and_offline_both_ways_are_told(
    write, monkeypatch
):
    asked, answers = [], [[ROW], ConnectionError("no network here")]

    def load_dataset(*args, **kwargs):
        asked.append((args, kwargs))
        if isinstance(answer := answers[len(asked) - 1], Exception):
            raise answer
        return answer

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    assert load_gsm8k("test")[0].answer == "1,200"
    assert asked == [(("openai/gsm8k", "main"), {"split": "test"})]
    with pytest.raises(ConnectionError) as caught:
        load_gsm8k("train")
    for part in ("no network here", "path=", "GSM8K_DIR="):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([ROW, ROW, {"question": "?", "answer": "7."}], "Row 3 needs"),
        ([ROW, {"question": "?", "answer": "7 ####  "}], "Row 2 needs"),
        ([{"question": "?", "answer": "#### 3 or 4"}], "ends with '#### 3 or 4'"),
        ([ROW, {"question": None, "answer": "#### 4"}], "{'question': None"),
        ([ROW, {"question": "?", "answer": 4}], "'answer': 4}"),
        ([ROW, [ROW]], r"It is \[{'question'"),
        (["", ROW, "", "{}"], "Row 4 needs"),  # blank lines are counted
        (["", ROW, "", '{"answer": '], r"train\.jsonl cannot be read: line 4 is not"),
        (["", ""], "the split 'train' holds no row"),
        (gzip.compress(b"{}", mtime=0), r"train\.jsonl is not in UTF-8"),
    ],
)
def test_a_row_or_file_that_cannot_be_used_is_named(rows, says, write):
    folder = write("train", *([] if isinstance(rows, bytes) else rows))
    if isinstance(rows, bytes):
        (folder / "train.jsonl").write_bytes(rows)
    with pytest.raises(ValueError, match=says):
        load_gsm8k("train", folder)
    with pytest.raises(FileNotFoundError, match=r"no .*test\.jsonl.*path="):
        load_gsm8k("test", folder)


GRADED = Path(FOLDER, "example_model_solutions.jsonl")


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER, reason="GSM8K_DIR names no folder with real GSM8K")
def test_every_gold_answer_and_every_verdict_that_openai_published():
    """5,276 verdicts, in openai/grade-school-math beside the data."""
    problems = load_gsm8k("train", FOLDER)
    answers, wrapped = [p.answer for p in problems], [*map(demonstration, problems)]
    assert len(problems) == sum(correctness_reward(wrapped, answers)) == 7473
    assert sum(lenient_reward([p.solution for p in problems], answers)) == 7473
    assert sum(format_reward(wrapped)) == 7473
    if not GRADED.exists():
        pytest.skip(f"there is no {GRADED}")
    seen = 0
    for row in map(json.loads, GRADED.read_text("utf-8").splitlines()):
        gold = row["ground_truth"].rpartition("A:")[2].strip()
        for said in (said for said in row.values() if isinstance(said, dict)):
            text, right = said["solution"], said["is_correct"]
            assert is_leniently_correct(text, gold) is right, text
            assert is_correct(in_template("", text.rpartition("A:")[2]), gold) is right
            seen += 1
    assert seen == 5276


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "last"), [(2600, 256), (40, 4), (9, 0)])
def test_validation_is_the_end_of_train_and_a_run_knows_it(write, rows, last):
    """Settings are chosen on problems that are neither end's."""
    write("train", *rows_of(make_problems("train", rows, seed=0)))
    path = write("test", *rows_of(make_problems("train", 7, seed=1)))
    kept, held = load_run_split("train", path), load_run_split("validation", path)
    assert kept + held == load_gsm8k("train", path)
    assert len(held) == last and load_run_split("test", path) == load_gsm8k(
        "test", path
    )
    config = GRPOConfig(task_settings={"data": str(path)})
    splits = make_task(config).splits
    assert splits == ("test", "validation", "train")
    sizes = [len(load_problems(config, split)) for split in splits]
    assert sizes == [7, last, rows - last]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: make_problems("test", 1, 0), r"split='test' is not .*'unseen_facts'"),
        (lambda: make_problems("unseen_facts", 1, 0, operands=(3, 3)), "widen the ran"),
        (lambda: make_problems("train", 1, 0, operands=(9, 1)), r"\[1\]=1.*at least 9"),
        (lambda: GSM8K(operands=(-1, 9)), r"operands\.0=-1.*than or equal to 0"),
        (lambda: GSM8K(operations="+/"), r"operations='\+/'.*should match"),
        (lambda: GSM8K(steps=()), "steps=.*at least 1 item"),
        (lambda: GSM8K(steps=(1, 0)), r"steps\.1=0.*greater than 0"),
        (lambda: GSM8K(forms=(1.0, 1.0)), r"forms\.2 "),
        (lambda: GSM8K(forms=(1, -1, 1, 1)), r"forms\.1=-1"),
        (lambda: GSM8K().problems("train", None, 0), "num_problems=None asks for all"),
        (lambda: load_run_split("dev", "."), "split='dev'.*'validation'"),
        (lambda: demonstration(WordProblem("?", "7"), "wild"), "form='wild' is not"),
        (lambda: with_slip(WordProblem("?", "7"), random.Random()), "rule.*slips=0"),
        (lambda: gold_number("5 or 7"), "holds no single number"),
        (lambda: correctness_reward([GOOD], ["none"]), "holds no single number"),
        (lambda: correctness_reward([GOOD, GOOD], ["7"]), "answer for each of the 2"),
        (lambda: correctness_reward([GOOD], "7"), "answer must be a list"),
        (lambda: format_reward(GOOD), r"is one text.*\[completion\]"),
        (lambda: format_reward([7]), "completion 7 is neither a text nor a chat"),
        (lambda: length_reward([GOOD], free=20, most=20), "free=20 and most=20"),
    ],
)  # fmt: skip
def test_bad_calls(call, says):
    with pytest.raises((ValueError, TypeError), match=says):
        call()


PROBLEMS = make_problems("train", 300, seed=3)


def test_slips_and_forms_come_as_often_as_they_are_asked_for():
    rng, number = random.Random(0), len(PROBLEMS)
    for share in (0.0, 0.3, 1.0):
        task = GSM8K(slips=share, forms=(1, 0, 0, 0))
        pairs = [(task.demonstration(p, rng), p.answer) for p in PROBLEMS]
        wrong = sum(not is_correct(*pair) for pair in pairs) / number
        assert abs(wrong - share) <= 4 * (share * (1 - share) / number) ** 0.5
    task = GSM8K(forms=(3, 1, 0, 0))
    texts = [task.demonstration(PROBLEMS[i % number], rng) for i in range(4000)]
    tagged = sum("<think>" in text for text in texts)
    assert 2850 < tagged < 3150  # 3000 and five standard errors
    even = GSM8K(forms=(1, 1, 1, 1))
    some = {even.demonstration(PROBLEMS[0], rng) for _ in range(200)}
    assert some == {demonstration(PROBLEMS[0], form) for form in FORMS}


def test_a_slip_is_off_by_one_either_way_and_carried_on():
    changes = []
    for i, problem in enumerate(PROBLEMS):
        slip = with_slip(problem, random.Random(i))
        changes.append(int(slip.answer) - int(problem.answer))
        assert slip.question == problem.question
        *lines, last = slip.solution.split("\n")
        assert last == f"#### {slip.answer}" and lines[-1].endswith(f"={slip.answer}")
        assert len(lines) == len(problem.operations)
        results = [int(line.partition("=")[2]) for line in lines]
        assert min(results) >= 0
        if len(lines) == 2:  # the second sum begins with what the first said
            assert lines[1].startswith(f"{results[0]}{problem.operations[1]}")
    assert set(changes) == {-1, 1}
    assert min(changes.count(-1), changes.count(1)) > 100  # of 300
    nothing = next(p for p in PROBLEMS if p.kind == "-" and p.answer == "0")
    assert {with_slip(nothing, random.Random(i)).answer for i in range(20)} == {"1"}
