"""Answers to the exercises of notebook 11: planted mistakes, and right ones."""

# name of the exercise -> (what a learner writes, words of the hint it must get)
PLANTED = {
    "extract_answer": [
        (
            "close = completion.rfind('</answer>')\n"
            "start = completion.rfind('<answer>', 0, close) if close > 0 else -1\n"
            "return completion[start + 8 : close].strip() if start >= 0 else None",
            "look into the thinking",
        ),
        (
            "said = completion.split('</think>')[-1]\n"
            "start = said.find('<answer>')\n"
            "close = said.find('</answer>', max(start, 0))\n"
            "found = min(start, close) >= 0\n"
            "return said[start + 8 : close].strip() if found else None",
            "the first pair",
        ),
        (
            "import re\n"
            "said = completion.split('</think>')[-1]\n"
            "m = re.search('(?s)<answer>(.*)</answer>', said)\n"
            "return m and m[1].strip()",
            "is greedy",
        ),
        (
            "said = completion.split('</think>')[-1]\n"
            "if '<answer>' not in said:\n    return None\n"
            "return said.split('<answer>')[-1].split('</answer>')[0].strip()",
            "never closed",
        ),
        (
            "said = completion.split('</think>')[-1]\n"
            "if '</answer>' not in said:\n    return ''\n"
            "said = said[: said.rindex('</answer>')]\n"
            "return said.split('<answer>')[-1].strip() if '<answer>' in said else ''",
            "you return an empty text",
        ),
    ],
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
    ],
    "honest_reward": [
        ("return 1.0 if completion.find(answer) >= 0 else 0.0", "17 holds a 7"),
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
    ],
    "completion_mask": [
        (
            "e = (tokens == eos).int()\n"
            "mask = torch.cumsum(e, 1) - e == 0\n"
            "mask[:, :prompt_width] = False\nreturn mask",
            "The prompt holds EOS too",
        ),
        (
            "e = (tokens == eos).int()\ne[:, :prompt_width] = 0\n"
            "return torch.cumsum(e, 1) - e == 0",
            "teaches the model to ask questions",
        ),
        (
            "e = (tokens == eos).int()\ne[:, :prompt_width] = 0\n"
            "mask = torch.cumsum(e, 1) == 0\nmask[:, :prompt_width] = False\n"
            "return mask",
            "You drop the EOS of the response",
        ),
        (
            "e = (tokens == eos).int()\ne[:, :prompt_width] = 0\n"
            "mask = torch.cumsum(e, 1) < 2\nmask[:, :prompt_width] = False\n"
            "return mask",
            "before the second EOS",
        ),
        (
            "mask = torch.ones_like(tokens).bool()\nmask[:, :prompt_width] = False\n"
            "return mask",
            "You score the padding behind",
        ),
        (
            "mask = tokens.ne(eos)\nmask[:, :prompt_width] = False\nreturn mask",
            "drops the EOS that the policy chose",
        ),
    ],
}

# name of the exercise -> the right answer, written in another way than the course's
LOOPS = {
    "extract_answer": (
        "parts = completion.split('</think>')[-1].split('</answer>')[:-1]\n"
        "for part in reversed(parts):\n"
        "    if '<answer>' in part:\n"
        "        return part[part.rindex('<answer>') + 8 :].strip()\n"
        "return None"
    ),
    "tag_share": (
        "points = 0.0\n"
        "for tag in ('<think>', '</think>', '<answer>', '</answer>'):\n"
        "    if len(completion.split(tag)) == 2:\n"
        "        points += 0.25\n"
        "return points"
    ),
    "honest_reward": (
        "import re\n"
        "form = r'\\s*<think>([^<]+)</think>\\s*<answer>([^<]+)</answer>\\s*'\n"
        "match = re.fullmatch(form, completion)\n"
        "if not match:\n    return 0.0\n"
        "said = match[2].replace(',', '').strip('$ ')\n"
        "try:\n    return float(float(said) == float(answer))\n"
        "except ValueError:\n    return 0.0"
    ),
    "completion_mask": (
        "mask = torch.zeros(tokens.shape, dtype=torch.bool)\n"
        "for row, tokens_of_row in enumerate(tokens.tolist()):\n"
        "    for place in range(prompt_width, len(tokens_of_row)):\n"
        "        mask[row, place] = True\n"
        "        if tokens_of_row[place] == eos:\n"
        "            break\n"
        "return mask"
    ),
}
