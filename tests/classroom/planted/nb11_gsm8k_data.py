"""Answers to the exercises of 11_gsm8k_data, as learners write them.

Each function is named after its exercise. It yields every answer with words that
`check` must print: those of a wrong answer's hint, or that it "is right".
"""

import re

import torch

from grpo_course.gsm8k import (
    correctness_reward,
    last_number,
    lenient_reward,
    read_number,
)
from grpo_course.sampling import response_mask
from grpo_course.tasks import extract_answer as answer_in
from grpo_course.tasks import format_reward

TAGS = ("<think>", "</think>", "<answer>", "</answer>")


def extract_answer():
    def behind(completion):
        return completion.split("</think>")[-1]

    def last_pair(said):
        before = said.rpartition("</answer>")[0]
        _, opened, inside = before.rpartition("<answer>")
        return inside.partition("</answer>")[0] if opened else None

    def answer(completion):
        close = completion.rfind("</answer>")
        start = completion.rfind("<answer>", 0, close) if close > 0 else -1
        return completion[start + 8 : close].strip() if start >= 0 else None

    yield "look into the thinking", answer

    def answer(completion):
        said = behind(completion)
        start = said.find("<answer>")
        close = said.find("</answer>", max(start, 0))
        found = min(start, close) >= 0
        return said[start + 8 : close].strip() if found else None

    yield "the first pair", answer

    def answer(completion):
        m = re.search("(?s)<answer>(.*)</answer>", behind(completion))
        return m and m[1].strip()

    yield "is greedy", answer

    def answer(completion):
        said = behind(completion)
        if "<answer>" not in said:
            return None
        return said.split("<answer>")[-1].split("</answer>")[0].strip()

    yield "never closed", answer

    def answer(completion):
        said = behind(completion)
        if "</answer>" not in said:
            return ""
        said = said[: said.rindex("</answer>")]
        return said.split("<answer>")[-1].strip() if "<answer>" in said else ""

    yield "you return an empty text", answer

    def answer(completion):
        found = re.findall(r"<answer>\s*([0-9]+)\s*</answer>", behind(completion))
        return found[-1] if found else None

    yield "You ask for digits", answer

    def answer(completion):
        _, cut, said = completion.partition("</think>")
        found = last_pair(said if cut else completion)
        return found and found.strip()

    yield "You cut at the first </think>", answer

    def answer(completion):
        said = behind(completion)
        close = said.rfind("</answer>")
        start = said.rfind("<answer>", 0, max(close, 0))
        return said[start + 8 : close].strip() if start >= 0 else None

    yield "closes it twice", answer

    def answer(completion):
        said = behind(completion)
        found = re.findall("<answer>(.*?)</answer>", said, re.DOTALL)
        return found[-1].strip() if found else None

    yield "runs over the next one", answer

    def answer(completion):
        found = re.findall("<answer>(.*?)</answer>", behind(completion))
        return found[-1].strip() if found else None

    yield "Add re.DOTALL", answer
    yield "strip() it", lambda text: last_pair(behind(text))

    def answer(completion):
        _, opened, inside = behind(completion).rpartition("<answer>")
        inside, closed, _ = inside.partition("</answer>")
        return inside.strip() if opened and closed else None

    yield "hides the pair before it", answer

    def answer(completion):
        found = re.findall(r"<answer>\s*(.*?)\s*</answer>", behind(completion), re.S)
        last = found[-1] if found else None
        return int(last) if last and last.isdigit() else last

    yield "You turn the text into a number", answer

    def answer(completion):
        said = behind(completion)
        for tag in TAGS:
            said = said.replace(tag, "")
        return said.strip()

    yield "You delete the tags", answer

    def answer(completion):
        if "</think>" not in completion:
            return None
        found = last_pair(behind(completion))
        return found and found.strip()

    yield "no thinking is marked", answer

    def answer(completion):
        found = re.findall("<answer>([^<]*)</answer>", behind(completion))
        return found[-1].strip() if found else None

    yield "look for whole tags", answer

    def answer(completion):
        parts = behind(completion).split("</answer>")[:-1]
        for part in reversed(parts):
            if "<answer>" in part:
                return part[part.rindex("<answer>") + 8 :].strip()
        return None

    yield "is right", answer


def tag_share():
    def answer(completion):
        form = r"(?s)^<think>.*?</think>\s*<answer>.*?</answer>$"
        return 1.0 if re.match(form, completion) else 0.0

    yield "All or nothing", answer
    yield "stands three times", lambda text: len([t for t in TAGS if t in text]) / 4
    yield "each copy of a tag", lambda text: 0.25 * sum(map(text.count, TAGS))

    def answer(completion):
        share = 0.0
        for tag in TAGS:
            if completion.count(tag) == 1:
                share += 0.25
            return share

    yield "Is the `return` inside the loop?", answer

    def answer(completion):
        c = completion.count
        think = c("<think>") == 1 and c("</think>") == 1
        answer = c("<answer>") == 1 and c("</answer>") == 1
        return 0.5 * think + 0.5 * answer

    yield "You pay for pairs", answer
    yield (
        "a count from 0 to 4",
        lambda text: float(len([t for t in TAGS if text.count(t) == 1])),
    )

    def answer(completion):
        points, place = 0, 0
        for tag in TAGS:
            found = completion.find(tag, place)
            if found >= 0 and completion.count(tag) == 1:
                points, place = points + 1, found
        return points / 4

    yield "only behind those before it", answer

    def answer(completion):
        points = 0
        for tag in TAGS:
            if completion.count(tag) != 1:
                break
            points += 0.25
        return points

    yield "You stop at the first tag", answer

    def answer(completion):
        counts = [completion.count(tag) for tag in TAGS]
        return 0.0 if max(counts) > 1 else sum(counts) / 4

    yield "The other three tags do", answer

    def answer(completion):
        points = 0.0
        for tag in TAGS:
            if len(completion.split(tag)) == 2:
                points += 0.25
        return points

    yield "is right", answer


def honest_reward():
    def matched(completion, thinking, gap, inside):
        form = rf"(?s)\s*<think>{thinking}</think>{gap}<answer>{inside}</answer>\s*"
        return re.fullmatch(form, completion)

    def graded(found, answer):
        if not found:
            return 0.0
        return float(read_number(found[2]) == read_number(answer))

    yield "17 holds a 7", lambda text, answer: 1.0 if text.find(answer) >= 0 else 0.0

    def answer(completion, answer):
        whole = format_reward([completion]) == [1.0]
        return float(whole and answer in completion)

    yield "17 holds a 7", answer

    def answer(completion, answer):
        said = [
            x.rstrip(".").replace(",", "")
            for x in re.findall(r"[0-9][0-9.,]*", completion)
        ]
        return float(any(float(x) == float(answer) for x in said))

    yield "listing many numbers", answer
    yield "wherever it stands", lambda text, answer: lenient_reward([text], [answer])[0]
    yield (
        "the answer and not the form",
        lambda text, answer: correctness_reward([text], [answer])[0],
    )

    def answer(completion, answer):
        form = format_reward([completion])[0]
        return 0.5 * form + 0.5 * correctness_reward([completion], [answer])[0]

    yield "You add the two", answer

    def answer(completion, answer):
        inside = completion.split("<answer>")[-1].split("</answer>")[0]
        return float(format_reward([completion])[0] == 1 and inside == answer)

    yield "You compare texts", answer
    yield (
        "a pair of tags of its own",
        lambda text, answer: graded(matched(text, "(.+)", r"\s*", "(.+)"), answer),
    )

    def answer(completion, answer):
        if not matched(completion, "(.+)", r"\s*", "(.+)"):
            return 0.0
        return correctness_reward([completion], [answer])[0]

    yield "runs over tags", answer
    yield (
        "breaks no form",
        lambda text, answer: graded(matched(text, "([^<]+)", "", "([^<]+)"), answer),
    )
    yield (
        "A `<` alone is no tag",
        lambda text, answer: graded(
            matched(text, "([^<]+)", r"\s*", "([^<]+)"), answer
        ),
    )

    def answer(completion, answer):
        form = format_reward([completion])[0] >= 0.8
        right = correctness_reward([completion], [answer]) == [1.0]
        return float(form and right)

    yield "words around them", answer

    def answer(completion, answer):
        form = all(completion.count(tag) == 1 for tag in TAGS)
        right = correctness_reward([completion], [answer]) == [1.0]
        return float(form and right)

    yield "words around them", answer

    def answer(completion, answer):
        form = r"(?s)\s*<think>([^<]+)</think>\s*<answer>([^<]+)</answer>\s*"
        found = re.fullmatch(form, completion)
        return float(found is not None and found[2].strip() == answer)

    yield "let correctness_reward compare them", answer

    def answer(completion, answer):
        whole = format_reward([completion]) == [1.0]
        return float(whole and last_number(completion) == read_number(answer))

    yield "Grade the answer as a whole", answer

    def answer(completion, answer):
        form = format_reward([completion]) == 1.0
        return float(form and correctness_reward([completion], [answer]) == 1.0)

    yield "[1.0] == 1.0 is False", answer

    def answer(completion, answer):
        both = format_reward([completion]), correctness_reward([completion], [answer])
        return float(all(both))

    yield "a list is true even as [0.0]", answer

    def answer(completion, answer):
        form = format_reward([completion])[0]
        return min(form, correctness_reward([completion], [answer])[0])

    yield "all or nothing", answer

    def answer(completion, answer):
        whole = format_reward([completion]) == [1.0]
        said = read_number(answer_in(completion) or "")
        return float(
            whole and said is not None and abs(said) == abs(read_number(answer))
        )

    yield "The minus of the right answer is missing", answer

    def answer(completion, answer):
        text = "((?:(?!</?think>|</?answer>).)+)"
        form = r"(?s)\s*<think>" + text + r"</think>\s*<answer>" + text
        match = re.fullmatch(form + r"</answer>\s*", completion)
        if not match or not match[1].strip():
            return 0.0
        said = match[2].replace(",", "").strip("$ ")
        try:
            return float(float(said) == float(answer))
        except ValueError:
            return 0.0

    yield "is right", answer


def completion_mask():
    def without_prompt(mask, prompt_width):
        mask[:, :prompt_width] = False
        return mask

    def behind_prompt(tokens, prompt_width, eos):
        mask = torch.zeros_like(tokens, dtype=torch.bool)
        mask[:, prompt_width:] = response_mask(tokens[:, prompt_width:], eos)
        return mask

    def ends(tokens, prompt_width, eos):
        e = (tokens == eos).int()
        e[:, :prompt_width] = 0
        return e

    def answer(tokens, prompt_width, eos):
        e = (tokens == eos).int()
        return without_prompt(torch.cumsum(e, 1) - e == 0, prompt_width)

    yield "The prompt holds EOS too", answer

    def answer(tokens, prompt_width, eos):
        e = ends(tokens, prompt_width, eos)
        return torch.cumsum(e, 1) - e == 0

    yield "teaches the model to ask questions", answer

    def answer(tokens, prompt_width, eos):
        e = ends(tokens, prompt_width, eos)
        return without_prompt(torch.cumsum(e, 1) == 0, prompt_width)

    yield "You drop the EOS of the response", answer

    def answer(tokens, prompt_width, eos):
        e = ends(tokens, prompt_width, eos)
        return without_prompt(torch.cumsum(e, 1) < 2, prompt_width)

    yield "before the second EOS", answer
    yield (
        "You score the padding behind",
        lambda ids, width, eos: without_prompt(torch.ones_like(ids).bool(), width),
    )
    yield (
        "drops the EOS that the policy chose",
        lambda ids, width, eos: without_prompt(ids.ne(eos), width),
    )

    def answer(tokens, prompt_width, eos):
        return response_mask(tokens[:, prompt_width:], eos)

    yield "as wide as the row", answer
    yield (
        "one place too early",
        lambda ids, width, eos: behind_prompt(ids, width - 1, eos),
    )

    def answer(tokens, prompt_width, eos):
        mask = torch.zeros_like(tokens, dtype=torch.bool)
        for row, text in zip(mask, tokens[:, prompt_width:], strict=True):
            end = (text == eos).int().argmax()
            row[prompt_width : prompt_width + end + 1] = True
        return mask

    yield "all its tokens count", answer
    yield "begins at prompt_width", lambda ids, width, eos: behind_prompt(ids, 4, eos)
    yield (
        "The ending token is the argument eos",
        lambda ids, width, eos: behind_prompt(ids, width, 2),
    )
    yield (
        "the place of the first EOS decides",
        lambda ids, width, eos: behind_prompt(ids, width, eos) & (ids != 0),
    )

    def answer(tokens, prompt_width, eos):
        mask = torch.zeros(tokens.shape, dtype=torch.bool)
        for row, tokens_of_row in enumerate(tokens.tolist()):
            for place in range(prompt_width, len(tokens_of_row)):
                mask[row, place] = True
                if tokens_of_row[place] == eos:
                    break
        return mask

    yield "is right", answer
