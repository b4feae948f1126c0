"""What lies in the folder of a run, and where."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grpo_course.files import write_atomically
from grpo_course.lock import try_lock
from grpo_course.runs.checkpoint import checkpoint_path, newest_good, saved_epochs
from grpo_course.runs.identity import CONFIG, differences
from grpo_course.runs.journal import Journal
from grpo_course.tasks import own_source
from grpo_course.training import GRPOConfig, load_config

CHECKPOINTS, LOCK = "checkpoints", ".lock"
TASK = "task.py"  # a copy of a task of one's own
HELD: set[Path] = set()  # the folders that this process keeps others out of


@contextmanager
def alone_in(out: Path) -> Iterator[None]:
    """Make the folder of a run if need be, and keep other processes out of it.

    The system frees the lock when its holder ends or dies; who holds it may ask for it
    again. Raises OSError if another process trains there, and if the folder cannot be
    made.
    """
    make_folder(out)
    folder = out.resolve()
    if folder in HELD:
        yield
        return
    with (out / LOCK).open("a") as file:
        if not try_lock(file):
            raise OSError(
                f"Another process is training in {out}. Wait until it ends, or choose "
                "another folder: --out DIR."
            )
        HELD.add(folder)
        try:
            yield
        finally:
            HELD.remove(folder)


def require_newest(out: Path, done: int) -> None:
    """Check that no process has gone on with a run since it was opened here.

    `done` is the epoch, or the step, that the opened run has come to.
    """
    newest = newest_good(out / CHECKPOINTS, lambda _: None)
    if newest != done:
        raise OSError(
            f"The run in {out} was gone on with since it was opened here: its newest "
            f"checkpoint is number {newest}, here it is at {done}. Open it again."
        )


def is_taken(out: Path) -> bool:
    """Whether a process trains in this folder now."""
    if not (out / LOCK).is_file():
        return False
    with (out / LOCK).open("a") as file:
        return not try_lock(file)


def make_folder(out: Path) -> None:
    """Make a folder. Raises FileExistsError where that cannot be."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise FileExistsError(
            f"--out {out} cannot be a folder: it is a file, or lies below one. Choose "
            "another folder: --out DIR."
        ) from None


def begin(config: GRPOConfig, out: Path) -> None:
    """Make the folder of a new run.

    One that never came to its first checkpoint is begun anew. Raises FileExistsError
    if it holds a run that did, and if the folder cannot be made.
    """
    if saved_epochs(out / CHECKPOINTS):
        raise FileExistsError(
            f"{out} holds a run already. Go on with it: --resume. Or choose another "
            "folder: --out DIR. If nothing in it is worth keeping, delete it."
        )
    make_folder(out)
    Journal(out).require_empty()
    config.save(out / CONFIG)
    if source := own_source(config.task):
        write_atomically(out / TASK, source)


def require_same_task(config: GRPOConfig, out: Path) -> None:
    """Check that the file of a task of one's own is what it was when its run began."""
    kept = out / TASK
    if kept.is_file() and kept.read_text("utf-8") != own_source(config.task):
        raise ValueError(
            f"The file of {config.task} has changed since the run in {out} began; "
            f"{kept} is as it was then. Put that back to go on, or begin a new run: "
            "--out DIR."
        )


def saved_config(out: Path) -> GRPOConfig:
    """The config of the run in a folder. Raises FileNotFoundError if there is none."""
    if not (out / CONFIG).is_file():
        there = saved_epochs(out / CHECKPOINTS)
        if there:
            copy = checkpoint_path(out / CHECKPOINTS, there[-1]) / CONFIG
            raise FileNotFoundError(
                f"{out / CONFIG} is gone, but its checkpoints are there. Put it back: "
                f"{copy} is a copy of it."
            )
        raise FileNotFoundError(
            f"There is no run in {out}: it has no {CONFIG}. Pass the folder of a run. "
            "To begin one, leave out --resume."
        )
    return load_config(out / CONFIG)


def require_same(given: GRPOConfig, saved: GRPOConfig, out: Path) -> None:
    """Check that a run is resumed with its own settings, its length included."""
    differing = differences(saved, given)
    if differing:
        raise ValueError(
            f"The run in {out} has other settings: {differing}. Resume it "
            f"with --resume --out {out} alone. To go on with other settings, begin a "
            f"new run with its newest model: --config {out / CONFIG} --model {out} "
            "--out DIR, and what is to be other."
        )


def find_model(path: str | Path) -> str:
    """Where to load a model from: in the folder of a run, the newest checkpoint."""
    folder = Path(path) / CHECKPOINTS
    if not folder.is_dir():
        return str(path)
    epoch = newest_good(folder)
    if epoch is None:
        raise FileNotFoundError(
            f"The run in {path} has no checkpoint yet. Wait for its first, or pass "
            "the folder of another model."
        )
    return str(checkpoint_path(folder, epoch))


def find_start(path: str | Path) -> Path:
    """The model that GRPO began with: the first checkpoint of a run, or what the
    bridge to TRL keeps beside the model that it trained.
    """
    for folder in (
        checkpoint_path(Path(path) / CHECKPOINTS, 0),
        Path(path, "../start"),
    ):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(
        f"{path} has no model from before the training to compare with. Pass the "
        "folder of a run: --model runs/grpo."
    )


def config_of(path: str | Path) -> GRPOConfig | None:
    """The config of the run that a model belongs to; None if it belongs to none."""
    if not Path(path).is_dir():
        return None  # a name on the hub
    for folder in (Path(path), *Path(path).resolve().parents[:2]):
        if (folder / CONFIG).is_file():
            return load_config(folder / CONFIG)
    return None
