"""Defects in what is paid, and in what becomes of the pay."""

from grpo_course.classroom.hunt.defect import Defect

REWARDS = [
    Defect(
        cause="groups that mix prompts",
        complaint="The reward rises as it should, but late in the run most of the "
        "perfect answers to short lists have a negative delta.",
        first_look="prompts of one group, printed",
        shows="a group of rows with different prompts",
        probe="groups_share_a_prompt",
        why="The rows stand as ABCABC and are cut into groups as if they stood as "
        "AABBCC, so a response is compared with answers to other prompts.",
        thread="StarsfieldAI/R1-V #67",
        edits=(
            (
                "[p for p in drawn for _ in range(self.settings.num_responses)]",
                "drawn * self.settings.num_responses",
            ),
        ),
    ),
    Defect(
        cause="reward looks at another prompt's answer",
        complaint="The samples look right to me, and most of them are paid next to "
        "nothing.",
        first_look="three samples with prompt, text and reward side by side",
        shows="right answers that are paid as wrong ones",
        probe="rewards_fit_their_prompts",
        why="Responses stand as AABBCC, the answers to compare them with as ABCABC: "
        "most are graded against another problem.",
        thread="om-ai-lab/VLM-R1 #129",
        box="arrow into pay",
        edits=(
            (
                "        texts, rewards = self.pay(problems, responses)\n",
                "        asked = drawn * self.settings.num_responses\n"
                "        texts, rewards = self.pay(asked, responses)\n",
            ),
        ),
    ),
    Defect(
        cause="cut-off responses paid",
        complaint="From the same seed, my first rollout earns more than a colleague's "
        "in four runs of five, with the same limit of eight tokens.",
        first_look="share of responses without an end token, and their rewards",
        shows="a reward for responses that never ended",
        probe="cut_off_pays_nothing",
        why="Text without its end is graded as if it were finished: to run into the "
        "limit costs nothing, so the model need not learn to stop.",
        thread="huggingface/open-r1 #271",
        edits=(
            ("        ended = (responses == self.tokenizer.eos).any(dim=1)\n", ""),
            ("torch.tensor(rewards) * ended", "torch.tensor(rewards)"),
        ),
        settings={"max_new_tokens": 8},
        knob="max_new_tokens: with a generous limit few responses are cut off",
    ),
    Defect(
        cause="best of several answers paid",
        complaint="From the same seed, my first rollout earns an eighth to a third "
        "more than a colleague's, with the very same samples.",
        first_look="samples with more than one answer in them",
        shows="full pay for a text that holds several answers, one of them right",
        probe="one_answer_is_paid",
        why="The regular expression finds every list in the text, and the best one is "
        "paid: to guess several times beats to know.",
        thread="Liuziyu77/Visual-RFT #79",
        edits=(
            (
                '        found = re.fullmatch(r"= (\\d+(?: \\d+)*)", text)\n'
                "        if not found:\n"
                "            return 0.0\n"
                "        answer = [int(number) for number in found[1].split()]\n"
                "        if len(answer) != len(numbers):\n"
                "            return 0.2\n"
                "        right = sum(a == b for a, b in zip(answer, sorted(numbers), "
                "strict=True))\n"
                "        return 0.2 + 0.2 * right\n",
                '        found = re.findall(r"\\d+(?: \\d+)*", text)\n'
                "        right, gold = 0, sorted(numbers)\n"
                "        for each in found:\n"
                "            answer = [int(number) for number in each.split()]\n"
                "            right = max(right, sum(map(int.__eq__, answer, gold)))\n"
                "        return 0.2 * bool(found) + 0.2 * right\n",
            ),
        ),
    ),
    Defect(
        cause="end token left in the graded text",
        complaint="The reward is 0.0 in every step, though half of the samples look "
        "perfect.",
        first_look="repr of a text that the reward function gets",
        shows="a reward of exactly 0 for everything",
        probe="right_answer_is_paid",
        why="The text still holds its special tokens, and the pattern must match to "
        "the very end: it never does.",
        thread="verl-project/verl #715",
        edits=(
            (
                "self.tokenizer.decode(row)",
                "self.tokenizer.decode(row, skip_special_tokens=False)",
            ),
        ),
    ),
    Defect(
        cause="mean and spread of the whole batch",
        complaint="In the second half of the run the loss is mostly below zero, and "
        "perfect answers to short lists have negative deltas by then.",
        first_look="sum of the deltas of each group",
        shows="deltas of a group that do not sum to zero",
        probe="groups_stand_alone",
        why="Compared with the batch, every answer to a well-paid prompt is good; what "
        "no response can change drowns what it can.",
        thread="XU-YIJIE/grpo-flat #2",
        edits=(
            ("groups.mean(dim=1, keepdim=True)", "groups.mean()"),
            ("groups.std(dim=1, keepdim=True)", "groups.std()"),
        ),
    ),
    Defect(
        cause="tied groups normalized by rounding error",
        complaint="In every run the loss leaps to below -1 at some point, where a "
        "colleague's lies between -0.05 and 0.15. The rewards are alike.",
        first_look="deltas of a group in which all rewards are equal",
        shows="deltas that are not zero in a group of equal rewards",
        probe="tied_groups_are_silent",
        why="The spread of equal floats is a rounding error, and 1e-8 is no larger "
        "than that: an error is divided by an error.",
        thread="NousResearch/atropos #465",
        edits=(("1e-4", "1e-8"),),
        knob="reward scale: halves and whole numbers have no rounding error",
    ),
]
