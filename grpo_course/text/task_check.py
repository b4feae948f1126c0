"""Try a task before a model does: what cheap policies earn, and what is wrong with it.

Six mistakes stop no run and make it worthless: the right response does not earn the
most, one that knows nothing earns as much, problems are not the same again, test
problems are trained on, a reward breaks on nonsense or on the chats that TRL passes, a
right response is too long to be written.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

from pandas import DataFrame, Series

from grpo_course.long_work import use_threads
from grpo_course.loop import tied_groups
from grpo_course.text.errors import own_line
from grpo_course.text.grader import read_number
from grpo_course.text.models import load_tokenizer
from grpo_course.text.responses import conversation_text, extract_answer, in_template
from grpo_course.text.tasks import (
    Problem,
    TextTask,
    pay,
    require_rewards,
    texts_voted_on,
)
from grpo_course.text.tiny import make_tokenizer
from grpo_course.text.training import (
    GRPOConfig,
    find_lost_text,
    load_problems,
    make_environment,
    make_policy,
    make_start,
    make_task,
    weigh,
)

RIGHT = "the right response"
LISTED = 20  # answers that a policy names at once, the right one among them
FOOLED = 0.75  # of what the right response earns: what no cheap policy may
SPARED = 0.1  # of the problems, whose right response may be cut off
LOOKED_AT = 64  # problems that rewards are tried on
LABELS = 100  # fewer different answers are the names of classes
HALF = 0.5  # of the answers, which a test may share with "train"; of mixed groups
# columns of a look at the start -> what they are called
SHARES = {"tied_right": "all right", "tied_wrong": "all wrong", "mixed": "mixed"}
ASKED = 16  # groups that a given model, which is slow, is asked for
TRIALS = 5  # warm starts that are tried


def attack(task: TextTask, count: int = LOOKED_AT, seed: int = 0) -> DataFrame:
    """What the right response and some cheap policies earn, a row each.

    Each reward has a column, the mean over `count` problems of "train"; "total" is
    their weighted sum, which is what GRPO is paid.
    """
    problems = list(task.problems("train", count, seed))
    paid = pay_each(task, problems, responses_of(task, problems))
    means = {
        policy: DataFrame(earned, dtype=float).mean() for policy, earned in paid.items()
    }
    table = DataFrame(means).T
    table["total"] = sum(table[n] * w for n, (_, w) in task.rewards.items())
    return table


def responses_of(task: TextTask, problems: Sequence[Problem]) -> dict[str, list[str]]:
    """A policy's name -> its response to each problem.

    The first knows what is right; none of the others knows a thing.
    """
    golds = [task.gold(problem) for problem in problems]
    answers = [extract_answer(gold) or gold for gold in golds]
    common = Counter(answers).most_common(1)[0][0]
    others = answers[1:] + answers[:1]
    numbers = " ".join(map(str, range(100)))
    lists = [
        " ".join([*(answers * LISTED)[place + 1 : place + 1 + LISTED], answer])
        for place, answer in enumerate(answers)
    ]
    tagged = extract_answer(golds[0]) is not None

    def say(texts: Sequence[str]) -> list[str]:
        return [in_template("?", text) if tagged else text for text in texts]

    return {
        RIGHT: golds,
        "nothing": [""] * len(problems),
        "the question again": say([problem.question for problem in problems]),
        "the commonest answer": say([common] * len(problems)),
        "another problem's answer": say(others),
        f"that one, {LISTED} times": [text * LISTED for text in say(others)],
        "the numbers from 0 to 99": say([numbers] * len(problems)),
        f"{LISTED} answers and the right one": say(lists),
    }


def pay_each(
    task: TextTask, problems: Sequence[Problem], responses: Mapping[str, list[str]]
) -> dict[str, dict[str, Sequence[float]]]:
    """A policy's name -> what each reward pays for its response to each problem."""
    return {
        policy: pay(task.rewards, problems, texts)
        for policy, texts in responses.items()
    }


def check_task(task: TextTask, config: GRPOConfig | None = None) -> bool:
    """Print the first mistake, or that there is none and what cheap policies earn.

    -> whether none was found. `config` as in `find_fault`.
    """
    if fault := find_fault(task, config):
        print("\n".join(wrap(f"[x] {fault}", 79, subsequent_indent="    ")))
        return False
    print("[v] Nothing wrong was found. What earns how much:")
    print(attack(task).to_string(float_format="{:.2f}".format))
    for doubt in doubts(task, config):
        print(f"[!] {doubt}")
    return True


def doubts(task: TextTask, config: GRPOConfig | None = None) -> Iterator[str]:
    """What may be meant, and mostly is not, in words with its cure."""
    problems = list(task.problems("train", LOOKED_AT, 0))
    responses = responses_of(task, problems)
    golds = responses[RIGHT]
    responses["endless"] = [gold * 100 for gold in golds]  # a penalty for length minds
    paid = pay_each(task, problems, responses)
    rewards = weigh(task.rewards, config.reward_weights if config else {})
    for name, (_, weight) in rewards.items():
        right, *others = (sum(columns[name]) for columns in paid.values())
        if weight > 0 and right <= min(others):
            yield (
                f"rewards[{name!r}] is paid for, and pays gold no more than anything "
                f"else: {golds[0][:60]!r}. Let gold write what it reads, or correct "
                "the reward."
            )
    warning = texts_voted_on(task.rewards)
    if warning and extract_answer(golds[0]) is None:
        yield warning


def shared_answers(problems: Sequence[Problem], others: Sequence[Problem]) -> str:
    """What is wrong where the problems have most of the others' answers, too; or "".

    Numbers, and a few labels, answer many questions in any split: those count for none.
    """
    known = {str(problem.answer): problem for problem in problems}
    known = {name: p for name, p in known.items() if read_number(name) is None}
    answers = {str(problem.answer): problem for problem in others}
    both = sorted(known.keys() & answers.keys()) if len(known) >= LABELS else []
    if not both or len(both) <= HALF * len(answers):
        return ""
    one, other = (each[both[0]].question[:60] for each in (answers, known))
    return (
        f"{len(both)} of its {len(answers)} answers are answers in 'train' too, such "
        f"as {both[0]!r} to {one!r} and to {other!r}. Where these are one problem in "
        "other words, memory passes for learning. Keep a problem only where "
        "split_of(str(its answer)) == split."
    )


def check_start(config: GRPOConfig) -> int | None:
    """Print what the tiny model of a run can do at its start, for some warm starts.

    -> the warm_start_steps to take; None where none of them leaves most groups mixed.
    Begins with those of the config. Where most groups are tied, it halves them or takes
    the middle if most are all right, and doubles them if they are not.
    """
    problems = load_problems(config)
    rows: dict[int, Series] = {}
    steps, least, most = config.warm_start_steps, 0, 0
    while steps not in rows and len(rows) < TRIALS:
        run = replace(config, warm_start_steps=steps)
        rows[steps] = look_at_start(run, problems, LOOKED_AT)
        right = rows[steps]["tied_right"] > rows[steps]["tied_wrong"]
        if rows[steps]["mixed"] >= HALF:
            break
        least, most = (least, steps) if right else (steps, most)
        steps = (least + most) // 2 if most else 2 * least or 100
    table = print_looks(config, rows, "warm_start_steps")
    best = max(rows, key=lambda steps: rows[steps]["mixed"])
    first = table.iloc[0]
    if first["mixed"] < HALF:
        what = "all right: nothing is left to learn"
        if first["all right"] <= first["all wrong"]:
            what = "all wrong, or earn the same: nothing is to be found"
        print(f"[!] After {table.index[0]} steps most groups are tied, {what}.")
    if table["mixed"][best] >= HALF:
        print(f"[v] A start that GRPO can learn from: --warm-start-steps {best}")
        return best
    print(
        f"[!] Even the best, {best} steps, leaves {table['mixed'][best]:.0%} of the "
        "groups mixed. Try problems that differ more in how hard they are, "
        f"--num-responses {2 * config.num_responses}, or a reward for a part of it."
    )
    return None


def look_at_start(
    config: GRPOConfig, problems: Sequence[Problem], num_groups: int
) -> Series:
    """What a run's first responses earn, in so many groups, and how many are tied."""
    model, tokenizer = make_start(config, problems)
    policy = make_policy(config, model, tokenizer)
    environment = make_environment(config, problems, tokenizer)
    looks = []
    for epoch in range(-(-num_groups // config.num_prompts)):
        earned = environment.reward(
            policy.sample(environment.prompts(epoch), config.num_responses)
        )
        tied = tied_groups(earned).float().mean().item()
        looks.append(environment.latest | {"mixed": 1 - tied})
    return DataFrame(looks).mean()


def print_looks(
    config: GRPOConfig, looks: Mapping[Any, Series], name: str
) -> DataFrame:
    """Looks at starts as a table; `name` is what they differ in. -> the table"""
    table = DataFrame(looks).T[[*make_task(config).rewards, *SHARES]]
    table = table.rename(columns=SHARES).rename_axis(index=name)
    print("What the start can do, as means of responses and shares of groups:")
    print(table.to_string(float_format="{:.2f}".format))
    return table


def check_model(config: GRPOConfig) -> float:
    """Print how many groups the given model of a run would leave mixed; that share."""
    use_threads(config.num_threads)
    look = look_at_start(config, load_problems(config), ASKED)
    print_looks(config, {config.model: look}, "model")
    mixed = float(look["mixed"])
    groups, size = config.num_prompts, config.num_responses
    print(f"An update would learn from about {groups * mixed:.0f} of {groups} groups.")
    if mixed < HALF:
        cures = "harder problems, a higher --temperature"
        if look["tied_right"] <= look["tied_wrong"]:
            cures = "easier problems, examples in the prompt, a reward for a part of it"
        print(f"[!] Most groups teach nothing: {cures}, --num-responses {2 * size}.")
    return mixed


def find_fault(task: TextTask, config: GRPOConfig | None = None) -> str:
    """The first mistake in a task, in words with its cure; "" where none is found.

    `config` is that of a run: how many problems it takes, how long a response may be.
    None: the first of the task's presets.
    """
    preset = next(iter(task.presets.values()), {})
    if config and config.model is not None:
        load_tokenizer(config.model)  # what is wrong with a model is not the task's
    try:
        return next(faults(task, config or GRPOConfig(**preset)), "")
    except Exception as error:
        return own_line(error) or f"{type(error).__name__}: {error}"


def faults(task: TextTask, run: GRPOConfig) -> Iterator[str]:
    """The mistakes of a task, in words, the cheapest to look for first."""
    problems = list(task.problems("train", run.num_problems, run.seed))
    yield from faults_of_problems(task, run, problems)
    yield from faults_of_rewards(task, problems[:LOOKED_AT])
    yield from faults_of_length(task, run, problems)


def faults_of_problems(
    task: TextTask, run: GRPOConfig, problems: Sequence[Problem]
) -> Iterator[str]:
    """They are problems, the same each time, and no split asks what is trained on."""
    strange = [each for each in problems if not isinstance(each, Problem)]
    if strange or not problems:
        found = f"has {strange[0]!r}" if strange else "has nothing"
        yield (
            f"problems('train', {run.num_problems}, {run.seed}) {found}, and is to be "
            "a list of Problem(question, answer), with one at least."
        )
    if list(task.problems("train", run.num_problems, run.seed)) != problems:
        yield (
            "Equal arguments give other problems each time. Draw them from a generator "
            'of their own, random.Random(f"{split} {seed}"): a resumed run asks for '
            "its problems again."
        )

    # No split may ask a question of "train"; the first, which is reported, none that
    # counts as the same problem.
    for split in task.splits:
        if split == "train":
            continue
        others = list(task.problems(split, run.eval_problems, run.seed))
        name = "group" if split == task.splits[0] else "question"
        trained = {getattr(problem, name) for problem in problems}
        asked = {getattr(problem, name) for problem in others}
        if shared := trained & asked:
            yield (
                f"{len(shared)} of the {len(asked)} problems of split {split!r} are "
                f"in 'train' too, such as {min(shared)!r}: memory would pass for "
                "learning. Keep a problem only where split_of(its text) == split."
            )
        if leak := shared_answers(problems, others):
            yield f"Split {split!r}: {leak}"


def faults_of_rewards(task: TextTask, some: Sequence[Problem]) -> Iterator[str]:
    """The right response earns the most, a cheap one less, and both the same again."""
    golds = [task.gold(problem) for problem in some]
    if odd := [gold for gold in golds if not isinstance(gold, str)]:
        yield f"gold returns {odd[0]!r}, and a response is a text. Return a str."
    responses = responses_of(task, some)
    try:
        require_rewards(task.rewards, task.measures, some)
        paid = pay_each(task, some, responses)
    except ValueError as error:  # no list, not a number for each, not called by name
        yield str(error)
        return
    right, *_ = paid[RIGHT].values()
    for problem, gold, earned in zip(some, golds, right, strict=True):
        if earned != 1:
            yield (
                f"The first reward gives the gold response {earned:g}, not 1: {gold!r} "
                f"for the answer {problem.answer!r}. Does gold write what the reward "
                "reads?"
            )
    chats = [[{"role": "assistant", "content": gold}] for gold in golds]
    for name, pair in task.rewards.items():
        text, again = (list(pay({name: pair}, some, golds)[name]) for _ in range(2))
        if text != again:
            yield (
                f"rewards[{name!r}] pays the same completions differently the second "
                "time. Let it depend on the text and the problem alone."
            )
        try:
            same = list(pay({name: pair}, some, chats)[name]) == text
        except Exception:
            same = False
        if not same:
            yield (
                f"rewards[{name!r}] cannot read a chat, a list of messages, and TRL "
                "passes one. completion_texts(completions) makes texts of both kinds."
            )
    totals = {
        policy: sum(w * sum(earned[name]) for name, (_, w) in task.rewards.items())
        for policy, earned in paid.items()
    }
    if (due := totals.pop(RIGHT)) <= 0:
        yield f"The right response earns {due:g}. Give a reward a weight above 0."
    for policy, total in totals.items():
        if total >= FOOLED * due:
            yield (
                f"{policy.capitalize()} earns {total / due:.0%} of what the right "
                f"response does: {responses[policy][0][:60]!r}. Training finds it "
                "first. Grade one answer, and all of it."
            )


def faults_of_length(
    task: TextTask, run: GRPOConfig, problems: Sequence[Problem]
) -> Iterator[str]:
    """The right response comes back whole from the tokens of the run's model."""
    some = problems[:LOOKED_AT]
    if run.model is not None:
        if lost := find_lost_text(run, some):
            yield f"With the model {run.model}, {lost}."
        return
    opening = task.opening(run.system_prompt)
    texts = [conversation_text(p.question, task.gold(p), opening) for p in problems]
    tokenizer = make_tokenizer(texts, run.vocab_size)
    golds = [task.gold(problem) for problem in some]
    rows = tokenizer(golds, add_special_tokens=False)["input_ids"]
    lengths = [len(row) + 1 for row in rows]  # the end is a token, too
    cut = sum(length > run.max_new_tokens for length in lengths) / len(lengths)
    if cut > SPARED:
        yield (
            f"The right response has up to {max(lengths)} tokens, and "
            f"max_new_tokens={run.max_new_tokens} cuts {cut:.0%} of them off: they "
            "can never be rewarded. Raise it in the preset, or let gold say less."
        )
