"""Installs the plug-in of Slurm that asks a server about each job, and removes it again."""

import difflib
import os
import re
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from luthier.compiled import part
from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.spec import environment_rules
from luthier.submission.ask import CONFIG, KEY, LONGEST_LIMIT_MS, TIME_LIMIT_MS, server_of
from luthier.texts import shown

PROGRAM = "luthier-ask"
_MARK = "  # luthier slurm install"
_BEFORE = "; before: "
_SAFE = re.compile(r"/[\w./+-]*")  # it is written into a Lua text and a command line
_OWN_SCRIPT = "-- Written by luthier slurm install; luthier slurm uninstall removes it."
_SCRIPTS = {
    "cli_filter": (
        "CliFilterPlugins",
        "function slurm_cli_setup_defaults(options, early_pass) return slurm.SUCCESS end\n"
        "function slurm_cli_pre_submit(options, pack_offset)\n"
        "  if loaded then luthier.pre_submit(options) end\n"
        "  return slurm.SUCCESS\n"
        "end\n"
        "function slurm_cli_post_submit(offset, job_id, step_id) return slurm.SUCCESS end\n",
        "in slurm_cli_pre_submit: dofile({path!r}).pre_submit(options)",
    ),
    "job_submit": (
        "JobSubmitPlugins",
        "function slurm_job_submit(job, partitions, user)\n"
        "  if loaded then luthier.job_submit(job) end\n"
        "  return slurm.SUCCESS\n"
        "end\n"
        "function slurm_job_modify(job, record, partitions, user) return slurm.SUCCESS end\n"
        "return slurm.SUCCESS\n",
        "in slurm_job_submit: dofile({path!r}).job_submit(job_desc)",
    ),
}
"""For each plug-in: its line in slurm.conf, the functions of its script, and how another script calls luthier's."""


@dataclass(frozen=True, slots=True)
class Change:
    """A file that is written, or removed if `after` is None; `before` is None for a new one."""

    path: Path
    before: bytes | None
    after: bytes | None
    mode: int = 0o644

    @property
    def text(self) -> str:
        """The change as a person reads it: the changed lines of slurm.conf, else what happens to the file."""
        if self.path.name != "slurm.conf" or self.before is None or self.after is None:
            return f"{'remove' if self.after is None else 'write' if self.before is None else 'replace'} {self.path}"
        before, after = (text.decode(errors="replace").splitlines() for text in (self.before, self.after))
        lines = [line for line in difflib.ndiff(before, after) if line[:2] in ("- ", "+ ")]
        return "\n".join([f"change {self.path}:", *(f"  {line}" for line in lines)])


def installation(folder: Path, url: str, token: str, key: str, limit_ms: int = TIME_LIMIT_MS) -> list[Change]:
    """What has to change to install the plug-in in the folder of slurm.conf; nothing if that was done before."""
    folder = _checked(folder)
    if not re.fullmatch(KEY, key):
        raise InvalidInputError(
            f"key {shown(key)}: is not the public key of a server; print it there: luthier slurm key"
        )
    try:
        server_of({"LUTHIER_URL": url, "LUTHIER_TOKEN": token, "LUTHIER_KEY": key})
    except ValueError:
        raise InvalidInputError(
            f"url {shown(url)} or its token is not valid; the address is http://HOST:PORT, without HTTPS: "
            "where the network is not trusted, use a tunnel such as ssh -L"
        ) from None
    if not 0 < limit_ms <= LONGEST_LIMIT_MS:
        raise InvalidInputError(f"limit: {limit_ms} ms is not possible; give 1 to {LONGEST_LIMIT_MS}")
    wanted = {
        folder / PROGRAM: (part("slurm-ask").build().read_bytes(), 0o755),
        folder / CONFIG: (
            f"url {url.rstrip('/')}\ntoken {token}\nkey {key}\nlimit_ms {limit_ms}\n".encode(),
            0o644,
        ),
    }
    for name, (_, functions, advice) in _SCRIPTS.items():
        module, script = folder / f"luthier_{name}.lua", folder / f"{name}.lua"
        text = (part("slurm-ask").folder / f"{name}.lua").read_text(encoding="utf-8")
        text = text.replace("@FOLDER@", str(folder)).replace("@RULES@", lua_rules())
        wanted[module] = text.encode(), 0o644
        if not _is_combined(script, module, advice):
            own = f'{_OWN_SCRIPT}\nlocal loaded, luthier = pcall(dofile, "{module}")\n\n{functions}'
            wanted[script] = own.encode(), 0o644
    changes = [Change(path, _contents(path), after, mode) for path, (after, mode) in wanted.items()]
    config = folder / "slurm.conf"
    before = _contents(config) or b""
    after = before
    for line, _, _ in _SCRIPTS.values():
        after = _with_lua(after.decode(errors="surrogateescape"), line, config).encode(errors="surrogateescape")
    return [one for one in [*changes, Change(config, before, after)] if one.before != one.after]


def lua_rules() -> str:
    """The rules of environment variables as a table of Lua; no comma in values, which would end one in `--export`."""
    refused = ", ".join(f'"{one}"' for one in environment_rules.REFUSED)
    signs = "".join(f"%{sign}" for sign in environment_rules.VALUE_SIGNS if sign != ",")
    longest = f"name = {environment_rules.LONGEST_NAME}, value = {environment_rules.LONGEST_VALUE}"
    return (
        f'{{ {longest}, most = {environment_rules.MOST_VARIABLES}, signs = "{signs}",\n  refused = {{ {refused} }} }}'
    )


def removal(folder: Path) -> list[Change]:
    """What has to change to remove the plug-in: slurm.conf first, so that no job runs with half of it."""
    folder = _checked(folder)
    config = folder / "slurm.conf"
    before = _contents(config) or b""
    changes = [Change(config, before, _without_lua(before))]
    for path in (folder / f"{name}.lua" for name in _SCRIPTS):
        text = _contents(path)
        if text is not None and text.startswith(_OWN_SCRIPT.encode()):
            changes.append(Change(path, text, None))
        elif text is not None and f"luthier_{path.name}".encode() in text:
            raise InvalidInputError(f"{path}: still uses luthier_{path.name}; remove that line first")
    others = [folder / name for name in (*(f"luthier_{name}.lua" for name in _SCRIPTS), CONFIG, PROGRAM)]
    changes += [Change(path, text, None) for path in others if (text := _contents(path)) is not None]
    return [one for one in changes if one.before != one.after]


def carry_out(changes: Sequence[Change]) -> None:
    """Make the changes in order, each file at once."""
    for change in changes:
        try:
            _carry_out(change)
        except OSError as error:
            raise UnavailableError(f"{change.path}: {error.strerror}; nothing after it was changed") from error


def _carry_out(change: Change) -> None:
    if change.after is None:
        change.path.unlink()
        return
    path = change.path.resolve()  # slurm.conf may be a link
    known = path.stat() if change.before is not None else None
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".luthier-", delete=False) as draft:
        try:
            draft.write(change.after)
            draft.flush()
            os.fchmod(draft.fileno(), change.mode if known is None else stat.S_IMODE(known.st_mode))
            if known is not None and os.geteuid() == 0:
                os.fchown(draft.fileno(), known.st_uid, known.st_gid)
            os.fsync(draft.fileno())
            Path(draft.name).replace(path)
        except BaseException:
            Path(draft.name).unlink()
            raise


def _checked(folder: Path) -> Path:
    folder = folder.expanduser().absolute()
    if not (folder / "slurm.conf").is_file():
        raise NotFoundError(f"{folder}: has no slurm.conf; name its folder: --config /etc/slurm")
    if not _SAFE.fullmatch(str(folder)):
        raise InvalidInputError(f"{shown(str(folder))}: only letters, digits and . _ - + / can be in its path")
    return folder


def _is_combined(script: Path, module: Path, advice: str) -> bool:
    """Whether a script of the site calls the module; one that does not is an error, with what to add to it."""
    text = _contents(script)
    if text is None or text.startswith(_OWN_SCRIPT.encode()):
        return False
    if module.name.encode() in text:
        return True
    raise InvalidInputError(
        f"{script}: exists and is not from luthier; to keep both, add to it {advice.format(path=str(module))}"
    )


def _with_lua(text: str, key: str, config: Path) -> str:
    """The configuration with `lua` among the values of a key."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        found = re.fullmatch(rf"(\s*{key}\s*=\s*)([^#\s]*)(.*)", line.rstrip("\r"), re.IGNORECASE | re.DOTALL)
        if found is None:
            continue
        if "lua" in found[2].lower().split(","):
            return text
        if line.rstrip().endswith("\\"):
            raise InvalidInputError(f"{config}:{number + 1}: {key} continues on the next line; write it on one line")
        values = f"{found[2]},lua" if found[2] and found[2].lower() not in ("none", "(null)") else "lua"
        lines[number] = f"{found[1]}{values}{_MARK}{_BEFORE}{line}"
        return "\n".join(lines)
    return f"{key}=lua{_MARK}\n{text}"


def _without_lua(contents: bytes) -> bytes:
    """The configuration as it was before."""
    lines = []
    for line in contents.split(b"\n"):
        _, marked, rest = line.partition(_MARK.encode())
        if not marked:
            lines.append(line)
        elif rest.startswith(_BEFORE.encode()):
            lines.append(rest.removeprefix(_BEFORE.encode()))
    return b"\n".join(lines)


def _contents(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
