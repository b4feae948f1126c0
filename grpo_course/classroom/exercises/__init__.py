"""The exercises of all notebooks, in the order of the course.

Each notebook has a module of its own name. An exercise is found because it is an
`Exercise` in one of them: there is no list to add it to.
"""

from importlib import import_module
from pkgutil import iter_modules

from grpo_course.classroom.old_check.exercise import Exercise

MODULES = [
    import_module(f"{__name__}.{module.name}")
    for module in iter_modules(__path__)
    if module.name.startswith("nb")
]
EXERCISES = tuple(
    sorted(
        (
            thing
            for module in MODULES
            for thing in vars(module).values()
            if isinstance(thing, Exercise)
        ),
        key=lambda exercise: [int(part) for part in exercise.key.split(".")],
    )
)
