"""Problems as files in GSM8K's own format."""

import pytest

from grpo_course.files import json_lines


@pytest.fixture(scope="session")
def save_gsm8k():
    """Write problems, generated ones too, as JSONL that `load_gsm8k` reads."""

    def saved(problems, path):
        rows = [{"question": p.question, "answer": p.solution} for p in problems]
        path.write_text(json_lines(rows), encoding="utf-8")

    return saved
