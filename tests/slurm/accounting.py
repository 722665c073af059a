"""The accounting of a throw-away Slurm: slurmdbd over a MariaDB that is reached through its folder only."""

from pathlib import Path

PROGRAMS = ("mariadbd", "mariadb-install-db", "slurmdbd", "sacctmgr", "sacct")

CONFIG = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser={user}
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
MessageTimeout=5
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={user}
StorageLoc=slurm
"""
IN_THE_CLUSTER = """accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.socket"""

_THROW_AWAY = ("--debug-no-sync", "--innodb-flush-method=nosync", "--innodb-log-file-size=4M")


def configure(folder: Path, port: int, user: str) -> str:
    """Write slurmdbd's configuration where it looks for it; return what the cluster's must say."""
    config = folder / "slurmdbd.conf"
    config.touch(0o600)
    config.write_text(CONFIG.format(folder=folder, port=port, user=user))
    return IN_THE_CLUSTER.format(folder=folder, port=port)


def is_configured(folder: Path) -> bool:
    """Whether the cluster in this folder has an accounting."""
    return (folder / "slurmdbd.conf").exists()


def installation(folder: Path, user: str) -> list[str]:
    """The command that makes an empty database."""
    return ["mariadb-install-db", *_options(folder, user), "--auth-root-authentication-method=normal", "--skip-test-db"]


def server(folder: Path, user: str) -> list[str]:
    """The command that serves the database, to whoever may enter the folder."""
    options = (f"--socket={socket_of(folder)}", "--skip-networking", "--skip-grant-tables")
    return ["mariadbd", *_options(folder, user), *options]


def socket_of(folder: Path) -> Path:
    """Where the database listens; clients look there by the variable `MYSQL_UNIX_PORT`."""
    return folder / "database.socket"


def _options(folder: Path, user: str) -> list[str]:
    return ["--no-defaults", f"--user={user}", f"--datadir={folder}/database", *_THROW_AWAY]
