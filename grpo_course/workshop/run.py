"""`python3 -m grpo_course run [names]`: execute the notebooks, write nothing."""

import shutil
import tempfile
import time
from pathlib import Path

from grpo_course.workshop import form, kernels, notebooks


def main(arguments: list[str], root: Path) -> int:
    """Execute each notebook in a temporary copy; non-zero if any failed."""
    paths = notebooks.named("run", arguments, root)
    kernels.use()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "notebooks")
        shutil.copytree(root / "notebooks", copy)
        passed = [run_one(copy / path.name) for path in paths]
    return int(not all(passed))


def run_one(path: Path) -> bool:
    """Execute one notebook and print its line; whether it ran to the end."""
    notebook = form.read(path)
    start = time.perf_counter()
    try:
        notebooks.execute(notebook, path.parent)
        outcome = "ok"
    except notebooks.Failed as error:
        outcome = f"FAILED, {error}"
    seconds = time.perf_counter() - start
    print(f"{path.stem:<20} {seconds:6.1f} s  {outcome}", flush=True)
    return outcome == "ok"
