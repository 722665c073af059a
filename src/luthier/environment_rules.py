"""Which environment variables luthier may set for a job that somebody else wrote.

A recommended configuration comes from an experiment of some user, and is used in jobs of others. A variable that makes
programs load a library, read a start-up file or search another folder would run that user's programs there.
"""

import re

LONGEST_VALUE = 256
MOST_VARIABLES = 64

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_VALUE = re.compile(r"[A-Za-z0-9_.,:+=@%^-]*")
_REFUSED_STARTS = (
    *("LD_", "DYLD_", "LUTHIER", "SLURM", "SBATCH", "SRUN", "PMI", "BASH", "PYTHON", "PERL", "RUBY", "LUA"),
    *("JAVA", "_JAVA", "JDK_", "NODE_", "GIT_", "GCONV", "MODULE", "LMOD", "SSH", "SUDO"),
)
_REFUSED_ENDS = ("PATH", "PRELOAD", "LIBRARY", "PLUGIN", "PLUGINS", "TOOL_LIBRARIES", "RC")
_REFUSED = frozenset(
    ["ENV", "EDITOR", "HOME", "HOSTALIASES", "IFS", "LOGNAME", "PAGER", "PROMPT_COMMAND", "PS4", "PWD", "SHELL", "USER"]
)


def problem_of_variable(name: str, value: str) -> str | None:
    """Why luthier does not set this variable in other people's jobs; None if it may."""
    if not _NAME.fullmatch(name):
        return f"{name[:40]!r} is not the name of an environment variable"
    upper = name.upper()
    if upper.startswith(_REFUSED_STARTS) or upper.endswith(_REFUSED_ENDS) or upper in _REFUSED:
        return f"{name} can change which programs and libraries a job uses"
    if len(value) > LONGEST_VALUE:
        return f"the value of {name} has more than {LONGEST_VALUE} characters"
    if not _VALUE.fullmatch(value):
        return f"the value of {name} has other characters than letters, digits and _ . , : + = @ % ^ -"
    return None
