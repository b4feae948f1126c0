"""`python3 -m grpo_course run [names]`: execute the notebooks, write nothing.

`--cpu default avx2 compatible` executes them as on other processors, once for each;
`--twice` executes each cell twice in a row, and names the cells that cannot be.
"""

import shutil
import tempfile
import time
from pathlib import Path

from nbclient import NotebookClient

from grpo_course.workshop import form, kernels, notebooks


def main(arguments: list[str], root: Path) -> int:
    """Execute each notebook in a temporary copy; non-zero if any failed."""
    parser = notebooks.parser("run")
    parser.add_argument("--cpu", nargs="+", choices=kernels.CPUS, default=[""])
    parser.add_argument("--twice", action="store_true")
    options = parser.parse_args(arguments)
    folders = (root / "notebooks", root / "teaching")
    paths = notebooks.choose(folders[0], options.names, folders[1])
    kernels.use()
    passed = []
    for cpu in options.cpu:
        with tempfile.TemporaryDirectory() as folder:
            for each in filter(Path.exists, folders):
                shutil.copytree(each, Path(folder, each.name))
            copies = [Path(folder, path.relative_to(root)) for path in paths]
            passed += [run_one(copy, cpu, options.twice) for copy in copies]
    return int(not all(passed))


def run_one(path: Path, cpu: str = "", twice: bool = False) -> bool:
    """Execute one notebook and print its line; whether it ran to the end."""
    notebook = form.read(path)
    kind = notebooks.TwiceClient if twice else NotebookClient
    start = time.perf_counter()
    try:
        notebooks.execute(notebook, path.parent, kernels.CPUS.get(cpu), kind)
        outcome = "ok"
    except notebooks.Failed as error:
        outcome = f"FAILED, {error}"
    seconds = time.perf_counter() - start
    column = f"{cpu:<18} " if cpu else ""
    print(f"{path.stem:<20} {column}{seconds:6.1f} s  {outcome}", flush=True)
    return outcome == "ok"
