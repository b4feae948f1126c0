"""What writes, checks and shows the notebooks; learners do not import it."""

import sys

# With `rfc3987_syntax`, jsonschema builds a grammar of web addresses when nbformat is
# imported. That takes seconds, and no notebook asks for it; without, it goes on.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
