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

from grpo_course import install

ROOT = install.ROOT
NO_FOLDER = (errno.ENOTDIR, errno.EEXIST)  # a file is in its way
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, *NO_FOLDER)

# What each does, and its command: (module, extras of pyproject.toml it needs, help)
GROUPS: dict[str, dict[str, tuple[str, tuple[str, ...], str]]] = {
    "Learn": {
        "lab": ("tools.lab", (), "open the course in JupyterLab"),
        "progress": ("tools.progress", (), "show your progress in every notebook"),
    },
    "Teach": {
        "slides": ("tools.slides", ("slides",), "present the hour, or half a day"),
        "site": ("tools.site", ("site",), "build the website into _site"),
    },
    "Train": {
        "fetch": ("text.fetch:main", ("smollm2",), "fetch a pretrained model"),
        "new-task": (
            "text.cli:new_task",
            (),
            "write a starter file for a task of your own",
        ),
        "check-task": ("text.cli:check_task", (), "find what is wrong with a task"),
        "train": ("text.cli:train", (), "train a language model on a text task"),
        "show": ("text.cli:show", (), "print and draw runs, seeds of one together"),
        "evaluate": ("text.cli:evaluate", (), "measure what a model can do"),
        "ask": ("text.cli:ask", (), "talk to a model, and see what it is paid"),
    },
    "Develop": {
        "test": (
            "tools.run:test",
            ("test", "scale", "slides", "smollm2", "lora"),
            "check everything",
        ),
        "test-browser": (
            "tools.browser",
            ("browser", "site"),
            "try JupyterLab and the website in a real browser",
        ),
        "run": ("tools.run:run", (), "execute the notebooks in a temporary copy"),
        "save": ("tools.save", (), "execute the notebooks and store their outputs"),
        "bench": ("tools.run:bench", ("scale",), "run the benchmarks"),
    },
}
HAND_ON = ("site", "test", "test-browser", "bench")  # options, to other programs
COMMANDS = {name: row for group in GROUPS.values() for name, row in group.items()}


def usage() -> str:
    """The help text."""
    lines = [f"{install.call('COMMAND --help')} lists the options"]
    for group, rows in GROUPS.items():
        lines += ["", group, *(f"  {name:<13} {row[2]}" for name, row in rows.items())]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Run one command; the exit status. What its user can mend is told in words."""
    try:
        return start(arguments)
    except install.NotReady as problem:
        told = str(problem)
    except ImportError as problem:
        package = (problem.name or "").partition(".")[0]
        if package in ("grpo_course", "tools"):  # a mistake of the course's own
            raise
        told = str(problem)
        if package:
            absent = isinstance(problem, ModuleNotFoundError)
            anew = ["--force-reinstall", "--no-deps"] * (not absent)
            told += f"\nInstall it: {install.pip_install(*anew, package)}"
    except OSError as problem:
        if problem.errno not in UNWRITABLE:
            raise
        cure = "Free up some space, make the folder writable, or choose another."
        told = f"{problem}\n{cure}"
    print(f"\n{told}", file=sys.stderr)
    return 1


def start(arguments: list[str]) -> int:
    """Run one command in the environment that it needs; the exit status."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        near = "".join(f" Did you mean {n}?" for n in get_close_matches(name, COMMANDS))
        print(f"{usage()}\n\nThere is no command {name!r}.{near}", file=sys.stderr)
        return 2
    module, extras, line = COMMANDS[name]
    beside = module.startswith("tools.")  # the package, in a checkout
    if beside and not (ROOT / "pyproject.toml").exists():
        raise install.NotReady(
            f"`{name}` works in a checkout of the course, and {ROOT} is none.\n"
            "Clone the repository, and run the command in its folder."
        )
    asks_help = bool({"-h", "--help"} & set(rest))  # which never installs
    python = install.python_for(ROOT, extras, install=not asks_help)
    if not python.exists():
        print(f"{install.call(name)}: {line}\nIts options are shown once the course is")
        print(f"installed, which {install.call('lab')} does.")
        return 0
    if not install.is_running(python):
        return install.restart(python, arguments)
    os.environ.pop(install.RESTARTED, None)  # commands started from here are new
    # Kernels take the course from here, wherever the packages were installed from.
    paths = [str(ROOT), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    module, _, function = module.partition(":")
    sys.path.append(str(ROOT))
    found = import_module(module if beside else f"grpo_course.{module}")
    if asks_help and name in HAND_ON:
        print(found.__doc__)
        return 0
    return getattr(found, function or "main")(rest, ROOT)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):  # a code page may lack what is printed
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        status = main(sys.argv[1:])
        if sys.stdout:
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
    except BrokenPipeError:  # its reader has seen enough: `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)
