"""Answers to the exercises of notebook 12: planted mistakes, and right ones."""

GATHER = "return scores.gather(-1, chosen[..., None]).squeeze(-1)"

# The two halves of a right answer to 12.2.
NEARLY_ALL_TIED = (
    "tied, right = end['tied_groups'], end['accuracy']\n"
    "if tied > 0.8 and right < 0.9:\n"
    "    return 'too hard' if right < 0.1 else 'format alone'\n"
)
FALL = (
    "fell = end['lenient_accuracy'] < start['lenient_accuracy'] - 0.1\n"
    "return 'rate too high' if fell else 'learns'"
)

# name of the exercise -> (what a learner writes, words of the hint it must get)
PLANTED = {
    "response_scores": [
        (
            "scores = logits[:, prompt_length:].log_softmax(-1)\n"
            "chosen = tokens[:, prompt_length:]\n" + GATHER,
            "have read it already",
        ),
        (
            "scores = logits[:, prompt_length:-1].log_softmax(-1)\n"
            "chosen = tokens[:, prompt_length + 1 :]\n" + GATHER,
            "lose the first response token",
        ),
        (
            "scores = logits[:, :-1].log_softmax(-1)\n"
            "chosen = tokens[:, 1:]\n" + GATHER,
            "score the prompt as well",
        ),
        (
            "scores = logits[:, prompt_length - 1 : -1].log_softmax(-1)\n"
            "chosen = tokens[:, prompt_length:]\n" + GATHER + ".sum(1)",
            "sum over pos",
        ),
        (
            "scores = logits[:, prompt_length - 1 : -1]\n"
            "chosen = tokens[:, prompt_length:]\n" + GATHER,
            "raw logits",
        ),
        (
            "scores = logits[:, prompt_length - 1 : -1].log_softmax(-1)\n"
            "chosen = tokens[:, prompt_length - 1 : -1]\n" + GATHER,
            "shift the logits and the tokens",
        ),
        (
            "scores = logits[:, prompt_length - 1 : -1].log_softmax(-1)\n"
            "chosen = tokens[:, prompt_length:, None]\n"
            "return scores.gather(-1, chosen).squeeze()",
            "drops a batch or pos axis of length 1",
        ),
    ],
    "diagnose": [
        (
            "if end['tied_groups'] > 0.8:\n    return 'too hard'\n"
            "fell = end['lenient_accuracy'] < start['lenient_accuracy'] - 0.1\n"
            "return 'rate too high' if fell else 'learns'",
            "Ask the accuracy which it is",
        ),
        (
            "if end['accuracy'] > start['accuracy']:\n    return 'learns'\n"
            "if end['tied_groups'] <= 0.8:\n    return 'rate too high'\n"
            "return 'too hard' if end['accuracy'] < 0.1 else 'format alone'",
            "rises with the form alone",
        ),
        (
            "if end['tied_groups'] <= 0.8:\n    return 'learns'\n"
            "if end['accuracy'] < 0.1:\n    return 'too hard'\n"
            "return 'format alone' if end['accuracy'] < 0.9 else 'learns'",
            "hides sums that got worse",
        ),
        (
            "if end['accuracy'] < 0.1:\n    return 'too hard'\n"
            "fell = end['lenient_accuracy'] < start['lenient_accuracy'] - 0.1\n"
            "return 'rate too high' if fell and end['format'] < 1 else 'learns'",
            "nearly all groups are tied",
        ),
        (
            "fell = end['lenient_accuracy'] < start['lenient_accuracy'] - 0.1\n"
            "if end['tied_groups'] > 0.8 and end['accuracy'] > 0.1:\n"
            "    return 'format alone'\n"
            "if end['tied_groups'] > 0.8:\n    return 'too hard'\n"
            "return 'rate too high' if fell else 'learns'",
            "ask for an accuracy below 0.9",
        ),
        (
            NEARLY_ALL_TIED
            + "fell = end['lenient_accuracy'] < start['lenient_accuracy']\n"
            "return 'rate too high' if fell else 'learns'",
            "Any fall counts",
        ),
        (
            NEARLY_ALL_TIED
            + "return 'rate too high' if end['lenient_accuracy'] < 0.5 else 'learns'",
            "where lenient accuracy ends",
        ),
        (
            NEARLY_ALL_TIED + "form_only = end['format'] > 0.9 and right < 0.5\n"
            "return 'rate too high' if form_only else 'learns'",
            "hides sums that got worse",
        ),
        (
            NEARLY_ALL_TIED
            + "change = abs(start['lenient_accuracy'] - end['lenient_accuracy'])\n"
            "return 'rate too high' if change > 0.1 else 'learns'",
            "without abs()",
        ),
        (
            NEARLY_ALL_TIED + "share = end['lenient_accuracy'] / "
            "start['lenient_accuracy']\n"
            "return 'rate too high' if share < 0.9 else 'learns'",
            "no share of the start",
        ),
        (
            NEARLY_ALL_TIED + "fell = right < start['lenient_accuracy'] - 0.1\n"
            "return 'rate too high' if fell else 'learns'",
            "part of the form is missing",
        ),
        (
            "if end['accuracy'] < 0.1:\n    return 'too hard'\n"
            + NEARLY_ALL_TIED
            + FALL,
            "while groups differ",
        ),
        (NEARLY_ALL_TIED.replace("0.1", "0.5") + FALL, "hardly any response right"),
        (NEARLY_ALL_TIED.replace("> 0.8", ">= 0.5") + FALL, "tied groups is too low"),
        (NEARLY_ALL_TIED.replace("0.8", "0.9") + FALL, "tied groups is too high"),
        (NEARLY_ALL_TIED.replace("end[", "start[", 1) + FALL, "ties off the start"),
        (
            NEARLY_ALL_TIED.replace(
                "end['tied_groups']", "max(start['tied_groups'], end['tied_groups'])"
            )
            + FALL,
            "tied at the start and are not any more",
        ),
        (
            NEARLY_ALL_TIED.replace("< 0.1", "< 0.1 and end['format'] < 0.95") + FALL,
            "too hard in perfect form",
        ),
        (
            FALL.replace("return", "said =")
            + "\nif said == 'rate too high':\n    return said\n"
            + NEARLY_ALL_TIED
            + "return said",
            "for the fall after them",
        ),
    ],
}

# name of the exercise -> a right answer that is written differently
LOOPS = {
    "response_scores": (
        "rows = []\n"
        "for row, text in zip(logits, tokens):\n"
        "    places = range(prompt_length, len(text))\n"
        "    scores = [row[t - 1].log_softmax(0)[text[t]] for t in places]\n"
        "    rows.append(torch.stack(scores))\n"
        "return torch.stack(rows)"
    ),
    "diagnose": (
        "tied, right = end['tied_groups'] > 0.8, end['accuracy']\n"
        "if tied and right < 0.9:\n"
        "    return 'too hard' if right < 0.1 else 'format alone'\n"
        "change = end['lenient_accuracy'] - start['lenient_accuracy']\n"
        "return 'learns' if change >= -0.1 else 'rate too high'"
    ),
}
