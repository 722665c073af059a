"""`luthier slurm install` and `uninstall`, on files only."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from luthier.__main__ import main
from luthier.submission.ask import CONFIG
from luthier.submission.signing_key import kept_signing_key

CONF = "ClusterName=x\nSlurmctldHost=h\n# the end, without a line end"
URL = "http://127.0.0.1:8642"
KEY = "0123456789abcdef" * 4

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LUTHIER_TOKEN", "secret-token")
    monkeypatch.delenv("LUTHIER_KEY", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    path = tmp_path / "slurm"
    path.mkdir()
    (path / "slurm.conf").write_text(CONF)
    return path


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["luthier", "slurm", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out + said.err


class Site:
    """The folder of slurm.conf, and the commands that change it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._with = folder, (monkeypatch, capsys)

    def install(self, *more: str) -> tuple[int, str]:
        return call(*self._with, "install", "--url", URL, "--key", KEY, "--config", str(self.folder), *more)

    def uninstall(self, *more: str) -> tuple[int, str]:
        return call(*self._with, "uninstall", "--config", str(self.folder), *more)

    @property
    def files(self) -> dict[str, tuple[bytes, int]]:
        return {path.name: (path.read_bytes(), path.stat().st_mode) for path in self.folder.iterdir()}

    @property
    def conf(self) -> str:
        return (self.folder / "slurm.conf").read_text()


@pytest.fixture
def site(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Site:
    return Site(folder, monkeypatch, capsys)


@needs_compiler
@pytest.mark.parametrize(
    "conf",
    [
        CONF,
        f"{CONF}\n",
        "CliFilterPlugins=user_defaults\nJobSubmitPlugins=all_partitions # ours\n",
        "  clifilterplugins = none\r\nJobSubmitPlugins=LUA\n",
        "JobSubmitPlugins=lua\nCliFilterPlugins=lua\n",
        "",
    ],
)
def test_uninstall_restores_every_byte(site: Site, conf: str) -> None:
    (site.folder / "slurm.conf").write_bytes(conf.encode())
    (site.folder / "slurm.conf").chmod(0o640)
    before = site.files
    code, said = site.install()
    assert code == 0, said
    lines = [line.partition("#")[0].strip().lower().replace(" ", "") for line in site.conf.splitlines()]
    assert sum(line.startswith("clifilterplugins=") and line.endswith("lua") for line in lines) == 1
    assert sum(line.startswith("jobsubmitplugins=") and line.endswith("lua") for line in lines) == 1
    assert os.access(site.folder / "luthier-ask", os.X_OK)
    assert (site.folder / CONFIG).read_text() == f"url {URL}\ntoken secret-token\nkey {KEY}\nlimit_ms 200\n"
    installed = site.files
    assert site.install() == (0, "installed already\n")
    assert site.files == installed
    assert site.uninstall()[0] == 0
    assert site.files == before
    assert site.uninstall() == (0, "not installed\n")


@needs_compiler
def test_a_dry_run_shows_all_and_changes_nothing(site: Site) -> None:
    before = site.files
    code, said = site.install("--dry-run")
    assert code == 0
    assert f"write {site.folder}/cli_filter.lua\n" in said
    assert "+ CliFilterPlugins=lua" in said
    assert "nothing was changed" in said
    assert "secret-token" not in said
    assert site.files == before
    site.install()
    installed = site.files
    assert "remove" in site.uninstall("--dry-run")[1]
    assert site.files == installed


@needs_compiler
def test_other_values_of_the_lines_stay(site: Site) -> None:
    (site.folder / "slurm.conf").write_text("JobSubmitPlugins=all_partitions,throttle\n")
    site.install()
    assert "JobSubmitPlugins=all_partitions,throttle,lua  #" in site.conf


@needs_compiler
@pytest.mark.parametrize("name", ["cli_filter.lua", "job_submit.lua"])
def test_a_script_of_the_site_is_never_overwritten(site: Site, name: str) -> None:
    (site.folder / name).write_text("-- ours\n")
    before = site.files
    code, said = site.install()
    assert code == 2
    assert said.count("\n") == 1
    assert f"dofile('{site.folder}/luthier_{name}')" in said
    assert site.files == before
    combined = f"-- ours\ndofile('{site.folder}/luthier_{name}')\n"
    (site.folder / name).write_text(combined)
    assert site.install()[0] == 0
    assert (site.folder / name).read_text() == combined
    code, said = site.uninstall()
    assert (code, "remove that line first" in said) == (2, True)
    (site.folder / name).write_text("-- ours\n")
    assert site.uninstall()[0] == 0
    assert site.files == before


@needs_compiler
def test_a_link_stays_a_link(site: Site, tmp_path: Path) -> None:
    real = tmp_path / "real.conf"
    (site.folder / "slurm.conf").rename(real)
    (site.folder / "slurm.conf").symlink_to(real)
    site.install()
    assert (site.folder / "slurm.conf").is_symlink()
    assert "CliFilterPlugins=lua" in real.read_text()


@needs_compiler
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--url", "https://host:1"], "without HTTPS"),
        (["--url", "http://host"], "not valid"),
        (["--limit-ms", "0"], "not possible"),
        (["--key", KEY[1:]], "is not the public key of a server; print it there: luthier slurm key"),
        (["--key", ""], "start luthier serve as this user first"),
        (["--token-file", "/nonexistent"], "No such file"),
        (["--config", "/nonexistent"], "has no slurm.conf"),
    ],
)
def test_mistakes_change_nothing(site: Site, words: list[str], said: str) -> None:
    before = site.files
    code, told = site.install(*words)
    assert code == 2
    assert said in told
    assert told.count("\n") == 1
    assert site.files == before


@needs_compiler
def test_the_key_of_the_server_of_this_user(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = call(monkeypatch, capsys, "key")
    assert (code, said.count("\n"), "start luthier serve" in said) == (2, 1, True)
    public = kept_signing_key().public  # as luthier serve does
    assert call(monkeypatch, capsys, "key") == (0, f"{public}\n")
    old = f"url {URL}\ntoken secret-token\nlimit_ms 200\n"
    (site.folder / CONFIG).write_text(old)
    assert f"replace {site.folder / CONFIG}\n" in site.install("--key", "")[1]
    assert f"\nkey {public}\n" in (site.folder / CONFIG).read_text()
    other = site.folder / "other.pem"
    named = kept_signing_key(other).public
    assert call(monkeypatch, capsys, "key", "--file", str(other)) == (0, f"{named}\n")
    monkeypatch.setenv("LUTHIER_KEY", named)
    assert site.install("--key", "")[0] == 0
    assert named != public


def test_a_folder_with_odd_characters_is_refused(site: Site) -> None:
    odd = site.folder / "a'b"
    odd.mkdir()
    (odd / "slurm.conf").write_text("")
    code, said = site.install("--config", str(odd))
    assert code == 2
    assert "only letters" in said
