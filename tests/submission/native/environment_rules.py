"""The rules of environment variables as a C header.

python -m tests.submission.native.environment_rules      # writes it anew, after a change of the rules
"""

from pathlib import Path

import luthier
from luthier.spec.environment_rules import LONGEST_NAME, LONGEST_VALUE, MOST_VARIABLES, REFUSED, VALUE_SIGNS

HEADER = Path(luthier.__file__).parents[2] / "native" / "slurm" / "environment_rules.h"


def header() -> str:
    """The text of the header."""
    names = "\n".join(f'    "{one}",' for one in REFUSED)
    return f"""/* Written from environment_rules.py by: python -m tests.submission.native.environment_rules */
#define LONGEST_NAME {LONGEST_NAME}
#define LONGEST_VALUE {LONGEST_VALUE}
#define MOST_VARIABLES_SET {MOST_VARIABLES}
#define VALUE_SIGNS "{VALUE_SIGNS}"

/* Names in capital letters; `*` is any text. */
static const char *const REFUSED[] = {{
{names}
}};
"""


if __name__ == "__main__":
    HEADER.write_text(header(), encoding="utf-8")
