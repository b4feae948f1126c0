"""The one way in: `python3 -m grpo_course lab`, `test`, `run`, `save`, `site`, ...

Standard library only, and readable by an old Python: this runs before anything is
installed. A new command is one line in COMMANDS and one module that has
`main(arguments, root)`, or a function of another name behind a colon, and returns the
exit status.
"""

from __future__ import annotations

import errno
import os
import sys
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from grpo_course.workshop import environment, machine

ROOT = Path(__file__).resolve().parent.parent
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)
ROOM = """\
Free up some space on the disk, or make the folder writable, and run the same command
again."""

# command: (module, extras of pyproject.toml that it needs, help)
COMMANDS = {
    "lab": ("workshop.lab", (), "open the course in JupyterLab"),
    "train": ("cli:train", (), "train a language model on a text task"),
    "evaluate": ("cli:evaluate", (), "measure what a model can do"),
    "show": ("cli:show", (), "print and draw a run, or two side by side"),
    "new-task": ("cli:new_task", (), "write a starter file for a task of your own"),
    "check-task": ("cli:check_task", (), "find what is wrong with a task"),
    "test": ("workshop.tests", ("test", "scale"), "run every check and every notebook"),
    "run": ("workshop.run", (), "execute the notebooks in a temporary copy"),
    "save": ("workshop.save", (), "execute the notebooks and store their outputs"),
    "progress": ("workshop.progress", (), "show your progress in every notebook"),
    "bench": ("workshop.bench", ("scale",), "run the benchmarks"),
    "site": ("workshop.site", ("site",), "build the website into _site"),
    "test-browser": (
        "workshop.browser_tests",
        ("browser", "site"),
        "try JupyterLab and the website in a real browser",
    ),
}
GROUPS = {
    "Learn": ("lab", "progress"),
    "Teach": ("site",),
    "Train": ("new-task", "check-task", "train", "show", "evaluate"),
    "Develop": ("test", "test-browser", "run", "save", "bench"),
}


def usage() -> str:
    """The help text."""
    lines = [
        machine.call("COMMAND [options]"),
        f"{machine.call('COMMAND --help')} lists the options",
    ]
    for group, names in GROUPS.items():
        lines += ["", group, *(f"  {name:<13} {COMMANDS[name][2]}" for name in names)]
    return "\n".join(lines)


def unknown(name: str) -> str:
    """That there is no such command, and which one may be meant."""
    near = get_close_matches(name, COMMANDS, n=1)
    return f"There is no command {name!r}." + "".join(
        f" Did you mean {n}?" for n in near
    )


def short_help(name: str) -> str:
    """What a command is, before its packages are installed."""
    _, extras, line = COMMANDS[name]
    installs = machine.call(name if extras else "lab")
    return (
        f"{machine.call(name)}: {line}\n"
        f"Install the course to see its options: {installs}"
    )


def main(arguments: list[str]) -> int:
    """Run one command; the exit status. What its user can mend is told in words."""
    try:
        return start(arguments)
    except environment.NotReady as problem:
        told = str(problem)
    except OSError as problem:
        if problem.errno not in UNWRITABLE:
            raise
        told = f"{problem}\n{ROOM}"
    print(f"\n{told}", file=sys.stderr)
    return 1


def start(arguments: list[str]) -> int:
    """Run one command in the environment that it needs; the exit status."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        print(f"{usage()}\n\n{unknown(name)}", file=sys.stderr)
        return 2
    module, extras, line = COMMANDS[name]
    if {"-h", "--help"} & set(rest):  # never installs
        python = environment.find(ROOT, extras)
    else:
        python = environment.ensure(ROOT, extras, line)
    if python is None:
        print(short_help(name))
        return 0
    if not environment.is_running(python):
        return environment.restart(python, arguments)
    os.environ.pop(environment.RESTARTED, None)  # commands started from here are new
    module, _, function = module.partition(":")
    work = getattr(import_module(f"grpo_course.{module}"), function or "main")
    return work(rest, ROOT)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
