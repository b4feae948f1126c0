"""Answers to 11.1 and 11.4: planted mistakes, and right ones."""

LAST_PAIR = (
    "before = said.rpartition('</answer>')[0]\n"
    "_, opened, inside = before.rpartition('<answer>')\n"
    "return inside.partition('</answer>')[0].strip() if opened else None"
)

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
        (
            "import re\nsaid = completion.split('</think>')[-1]\n"
            "found = re.findall(r'<answer>\\s*([0-9]+)\\s*</answer>', said)\n"
            "return found[-1] if found else None",
            "You ask for digits",
        ),
        (
            "_, cut, said = completion.partition('</think>')\n"
            "said = said if cut else completion\n" + LAST_PAIR,
            "You cut at the first </think>",
        ),
        (
            "said = completion.split('</think>')[-1]\n"
            "close = said.rfind('</answer>')\n"
            "start = said.rfind('<answer>', 0, max(close, 0))\n"
            "return said[start + 8 : close].strip() if start >= 0 else None",
            "closes it twice",
        ),
        (
            "import re\nsaid = completion.split('</think>')[-1]\n"
            "found = re.findall('<answer>(.*?)</answer>', said, re.DOTALL)\n"
            "return found[-1].strip() if found else None",
            "runs over the next one",
        ),
        (
            "import re\nsaid = completion.split('</think>')[-1]\n"
            "found = re.findall('<answer>(.*?)</answer>', said)\n"
            "return found[-1].strip() if found else None",
            "Add re.DOTALL",
        ),
        (
            "said = completion.split('</think>')[-1]\n"
            + LAST_PAIR.replace(".strip()", ""),
            "strip() it",
        ),
        (
            "said = completion.split('</think>')[-1]\n"
            "_, opened, inside = said.rpartition('<answer>')\n"
            "inside, closed, _ = inside.partition('</answer>')\n"
            "return inside.strip() if opened and closed else None",
            "hides the pair before it",
        ),
        (
            "if '</think>' not in completion:\n    return None\n"
            "said = completion.split('</think>')[-1]\n" + LAST_PAIR,
            "nothing is thinking",
        ),
        (
            "import re\nsaid = completion.split('</think>')[-1]\n"
            "found = re.findall('<answer>([^<]*)</answer>', said)\n"
            "return found[-1].strip() if found else None",
            "look for whole tags",
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
        (
            "from grpo_course.algorithm.masks import response_mask\n"
            "mask = torch.zeros_like(tokens, dtype=torch.bool)\n"
            "mask[:, 4:] = response_mask(tokens[:, 4:], eos)\nreturn mask",
            "begins at prompt_width",
        ),
        (
            "from grpo_course.algorithm.masks import response_mask\n"
            "mask = torch.zeros_like(tokens, dtype=torch.bool)\n"
            "mask[:, prompt_width:] = response_mask(tokens[:, prompt_width:], 2)\n"
            "return mask",
            "The ending token is the argument eos",
        ),
        (
            "from grpo_course.algorithm.masks import response_mask\n"
            "mask = torch.zeros_like(tokens, dtype=torch.bool)\n"
            "mask[:, prompt_width:] = response_mask(tokens[:, prompt_width:], eos)\n"
            "return mask & (tokens != 0)",
            "the place of the first EOS decides",
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
