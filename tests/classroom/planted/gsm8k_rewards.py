"""Answers to 11.2 and 11.3: planted mistakes, and right ones."""

WHOLE = (
    "from grpo_course.gsm8k.rewards import format_reward\n"
    "whole = format_reward([completion]) == [1.0]\n"
)
PATTERN = (
    "import re\n"
    "form = r'(?s)\\s*<think>{thinking}</think>{gap}<answer>{answer}</answer>\\s*'\n"
    "found = re.fullmatch(form, completion)\n"
    "if not found:\n    return 0.0\n"
)

# name of the exercise -> (what a learner writes, words of the hint it must get)
PLANTED = {
    "tag_share": [
        (
            "import re\n"
            "form = r'(?s)^<think>.*?</think>\\s*<answer>.*?</answer>$'\n"
            "return 1.0 if re.match(form, completion) else 0.0",
            "All or nothing",
        ),
        (
            "tags = '<think>', '</think>', '<answer>', '</answer>'\n"
            "return len([t for t in tags if t in completion]) / 4",
            "stands three times",
        ),
        (
            "tags = '<think>', '</think>', '<answer>', '</answer>'\n"
            "return 0.25 * sum(map(completion.count, tags))",
            "each copy of a tag",
        ),
        (
            "c = completion.count\n"
            "think = c('<think>') == 1 and c('</think>') == 1\n"
            "answer = c('<answer>') == 1 and c('</answer>') == 1\n"
            "return 0.5 * think + 0.5 * answer",
            "You pay for pairs",
        ),
        (
            "tags = '<think>', '</think>', '<answer>', '</answer>'\n"
            "return float(len([t for t in tags if completion.count(t) == 1]))",
            "a count from 0 to 4",
        ),
        (
            "tags = '<think>', '</think>', '<answer>', '</answer>'\n"
            "points, place = 0, 0\n"
            "for tag in tags:\n"
            "    found = completion.find(tag, place)\n"
            "    if found >= 0 and completion.count(tag) == 1:\n"
            "        points, place = points + 1, found\n"
            "return points / 4",
            "only behind those before it",
        ),
        (
            "points = 0\n"
            "for tag in ('<think>', '</think>', '<answer>', '</answer>'):\n"
            "    if completion.count(tag) != 1:\n        break\n"
            "    points += 0.25\n"
            "return points",
            "You stop at the first tag",
        ),
        (
            "tags = '<think>', '</think>', '<answer>', '</answer>'\n"
            "counts = [completion.count(tag) for tag in tags]\n"
            "return 0.0 if max(counts) > 1 else sum(counts) / 4",
            "The other three tags do",
        ),
    ],
    "honest_reward": [
        ("return 1.0 if completion.find(answer) >= 0 else 0.0", "17 holds a 7"),
        (
            WHOLE + "return float(whole and answer in completion)",
            "17 holds a 7",
        ),
        (
            "import re\n"
            "said = [x.rstrip('.').replace(',', '') for x in "
            "re.findall(r'[0-9][0-9.,]*', completion)]\n"
            "return float(any(float(x) == float(answer) for x in said))",
            "listing many numbers",
        ),
        (
            "from grpo_course.gsm8k.rewards import lenient_reward\n"
            "return lenient_reward([completion], [answer])[0]",
            "wherever it stands",
        ),
        (
            "from grpo_course.gsm8k.rewards import correctness_reward\n"
            "return correctness_reward([completion], [answer])[0]",
            "the answer and not the form",
        ),
        (
            "from grpo_course.gsm8k import rewards\n"
            "form = rewards.format_reward([completion])[0]\n"
            "return 0.5 * form + 0.5 * "
            "rewards.correctness_reward([completion], [answer])[0]",
            "You add the two",
        ),
        (
            "from grpo_course.gsm8k.rewards import format_reward\n"
            "inside = completion.split('<answer>')[-1].split('</answer>')[0]\n"
            "return float(format_reward([completion])[0] == 1 and inside == answer)",
            "You compare texts",
        ),
        (
            PATTERN.format(thinking="(.+)", gap="\\s*", answer="(.+)")
            + "from grpo_course.gsm8k.grading import read_number\n"
            "return float(read_number(found[2]) == read_number(answer))",
            "a pair of tags of its own",
        ),
        (
            PATTERN.format(thinking="(.+)", gap="\\s*", answer="(.+)")
            + "from grpo_course.gsm8k.rewards import correctness_reward\n"
            "return correctness_reward([completion], [answer])[0]",
            "runs over tags",
        ),
        (
            PATTERN.format(thinking="([^<]+)", gap="", answer="([^<]+)")
            + "from grpo_course.gsm8k.grading import read_number\n"
            "return float(read_number(found[2]) == read_number(answer))",
            "breaks no form",
        ),
        (
            PATTERN.format(thinking="([^<]+)", gap="\\s*", answer="([^<]+)")
            + "from grpo_course.gsm8k.grading import read_number\n"
            "return float(read_number(found[2]) == read_number(answer))",
            "A `<` alone is no tag",
        ),
        (
            "from grpo_course.gsm8k.rewards import correctness_reward, format_reward\n"
            "form = format_reward([completion])[0] >= 0.8\n"
            "right = correctness_reward([completion], [answer]) == [1.0]\n"
            "return float(form and right)",
            "words around them",
        ),
        (
            "from grpo_course.gsm8k.rewards import correctness_reward\n"
            "tags = '<think>', '</think>', '<answer>', '</answer>'\n"
            "form = all(completion.count(tag) == 1 for tag in tags)\n"
            "right = correctness_reward([completion], [answer]) == [1.0]\n"
            "return float(form and right)",
            "words around them",
        ),
        (
            WHOLE + "from grpo_course.gsm8k.grading import last_number, read_number\n"
            "return float(whole and last_number(completion) == read_number(answer))",
            "Grade the answer as a whole",
        ),
        (
            "from grpo_course.gsm8k.rewards import correctness_reward, format_reward\n"
            "form = format_reward([completion]) == 1.0\n"
            "return float(form and correctness_reward([completion], [answer]) == 1.0)",
            "[1.0] == 1.0 is False",
        ),
        (
            "from grpo_course.gsm8k.rewards import correctness_reward, format_reward\n"
            "both = format_reward([completion]), correctness_reward([completion], "
            "[answer])\n"
            "return float(all(both))",
            "a list is true even as [0.0]",
        ),
        (
            "from grpo_course.gsm8k import rewards\n"
            "form = rewards.format_reward([completion])[0]\n"
            "return min(form, rewards.correctness_reward([completion], [answer])[0])",
            "all or nothing",
        ),
        (
            WHOLE
            + "from grpo_course.gsm8k.grading import extract_answer, read_number\n"
            "said = read_number(extract_answer(completion) or '')\n"
            "return float(\n"
            "    whole and said is not None and abs(said) == abs(read_number(answer))\n"
            ")",
            "The minus of the right answer is missing",
        ),
    ],
}

# name of the exercise -> the right answer, written in another way than the course's
LOOPS = {
    "tag_share": (
        "points = 0.0\n"
        "for tag in ('<think>', '</think>', '<answer>', '</answer>'):\n"
        "    if len(completion.split(tag)) == 2:\n"
        "        points += 0.25\n"
        "return points"
    ),
    "honest_reward": (
        "import re\n"
        "text = '((?:(?!</?think>|</?answer>).)+)'\n"
        "form = r'(?s)\\s*<think>' + text + r'</think>\\s*<answer>' + text\n"
        "match = re.fullmatch(form + r'</answer>\\s*', completion)\n"
        "if not match or not match[1].strip():\n    return 0.0\n"
        "said = match[2].replace(',', '').strip('$ ')\n"
        "try:\n    return float(float(said) == float(answer))\n"
        "except ValueError:\n    return 0.0"
    ),
}
