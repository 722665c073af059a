"""The on-line sessions that a service serves: created, joined, restored from the store, and kept there."""

import itertools
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from luthier.errors import InvalidInputError, NotFoundError, UnavailableError
from luthier.online.records import OnlineRecord, OnlineSessions
from luthier.online.service.journal import Journal, sample_line, session_text
from luthier.online.service.protocol import Hello
from luthier.online.session import OnlineSession
from luthier.online.session_settings import OnlineSettings
from luthier.space import Space
from luthier.texts import shown
from luthier.trial import Config, Json, Sample

IDLE_S = 600.0
"""A session without clients is dropped from memory after this time; the next client restores it."""

SEEN_S = 10.0
"""A session that was seen longer ago is not served any more."""

MOST_SESSIONS = 1000
"""Most sessions of one user in memory: one client cannot use up the memory of the service."""

MOST_PARAMETERS = 500
"""Most parameters of a session: the first points of a search in very many dimensions take minutes to compute."""

Decide = Callable[[Callable[[], None], Callable[[], None]], None]
"""Runs the first function in another thread, and then the second one in the thread of the service."""

MOST_WAIT_S = 0.1
_WAIT_SHARE = 0.1  # of the longest iteration
_MOST_TEXTS = 10_000
_LOCKS = 64
_log = logging.getLogger(__name__)


class ServedSession:
    """One session in memory, with the names of its clients. All methods belong to the thread of the service."""

    def __init__(
        self, record: OnlineRecord, space: Space, session: OnlineSession, journal: Journal, decide: Decide
    ) -> None:
        self.record = record
        self.space = space
        self.session = session
        self.is_deleted = False
        self.is_changed = True
        self.idle_since = time.monotonic()
        self._decide, self._is_deciding = decide, False
        self._when_decided: list[Callable[[], None]] = []
        self._clients: set[str] = set()
        self._journal = journal
        self._prefix = session_text(record.id, record.uid)
        self._texts: dict[Config, str] = {}

    @property
    def is_idle(self) -> bool:
        """Whether it has had no clients for a while, and everything about it is stored."""
        return not self._clients and not self.is_changed and time.monotonic() - self.idle_since > IDLE_S

    def join(self, wanted: str, count: int | None) -> tuple[str, list[str]]:
        """A name for a connection that no other has, and one for each of its clients; `count` None is a single one."""
        for number in itertools.count(1):
            name = wanted if number == 1 else f"{wanted}-{number}"
            names = [name] if count is None else [f"{name}:{place}" for place in range(count)]
            if self._clients.isdisjoint(names):
                break
        self._clients.update(names)
        return name, names

    def fetch(self, client: str, now: float) -> str:
        """What the client runs next, as JSON."""
        return self.text(self.session.fetch(client, now))

    def report(
        self, clients: Sequence[str], values: Sequence[float | None], configs: Sequence[Config | None], now: float
    ) -> None:
        """Take the values of clients; when this returns, they survive the death of the service."""
        self.is_changed = True
        samples = [
            self.session.report(client, value, now, config)
            for client, value, config in zip(clients, values, configs, strict=True)
        ]
        self._let_decide()
        self._keep(samples)

    def leave(self, clients: Iterable[str], now: float, *, lost: bool) -> None:
        """Give the configurations of the clients to others."""
        self.is_changed = True
        self.idle_since = time.monotonic()
        clients = list(clients)
        self._clients.difference_update(clients)
        if not self.is_deleted:
            samples = [self.session.leave(client, now, lost=lost) for client in clients]
            self._let_decide()
            self._keep(samples)

    @property
    def wait_s(self) -> float:
        """How long a fetch should wait for a decision of the strategy: little, compared with an iteration."""
        if not self._is_deciding or self.session.phase != "searching":
            return 0.0
        return min(MOST_WAIT_S, _WAIT_SHARE * self.session.longest_s)

    def call_when_decided(self, call: Callable[[], None]) -> None:
        """Call this once when the strategy has decided."""
        self._when_decided.append(call)

    def _let_decide(self) -> None:
        """Let the strategy decide in another thread, if it has to."""
        decision = self.session.decision
        if decision is not None and not self._is_deciding:
            self._is_deciding = True
            self._decide(decision, self._decided)

    def _decided(self) -> None:
        self._is_deciding = False
        self.session.decided()
        self.is_changed = True
        self._let_decide()
        if not self._is_deciding:
            waiting, self._when_decided = self._when_decided, []
            for call in waiting:
                call()

    def view(self) -> Mapping[str, Json] | None:
        """What people see of the session; None if its strategy, which may be a plug-in, fails."""
        try:
            view = self.session.view().to_json()
            json.dumps(view, allow_nan=False)  # raises; the store would refuse it together with those of other sessions
            return view
        except Exception:  # noqa: BLE001 - the code of others may fail in any way; other sessions go on
            _log.exception("on-line session %r cannot be shown", self.record.name)
            return None

    def text(self, config: Config) -> str:
        """The configuration as JSON."""
        text = self._texts.get(config)
        if text is None:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            text = self._texts[config] = json.dumps(dict(config), separators=(",", ":"))
        return text

    def _keep(self, samples: Sequence[Sample | None]) -> None:
        lines = [
            sample_line(self._prefix, sample, json.dumps(sample.client), self.text(sample.config))
            for sample in samples
            if sample is not None
        ]
        if not lines:
            return
        try:
            self._journal.write(b"".join(lines))
        except OSError as error:
            raise UnavailableError(f"the sample could not be kept: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class Save:
    """What is to be written about one session: that it is served and, if it has changed, its view."""

    session_id: int
    view: Mapping[str, Json] | None


@dataclass(slots=True)
class Sessions:
    """The sessions in memory by author and name.

    `open` and `save` use the store and may take long: `open` may run in several threads at a time, `save` in one. The
    others belong to the thread of the service.
    """

    store: OnlineSessions
    journal: Journal
    decide: Decide
    clock: Callable[[], float] = time.time
    _served: dict[tuple[str, str], ServedSession] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _opening: Sequence[threading.Lock] = field(default_factory=lambda: [threading.Lock() for _ in range(_LOCKS)])

    def open(self, author: str, hello: Hello) -> ServedSession:
        """The session that a client wants to join; it is restored or created if necessary."""
        key = author, hello.session
        with self._opening[hash(key) % _LOCKS]:  # a session is restored once, and holds up few others meanwhile
            served = self._found(key)
            if served is None:
                self._check_room(author)
                record = self.store.find(*key) or self._create(author, hello)
                self._check_not_served(record)
                served = self._restored(record)
                with self._lock:
                    self._served[key] = served
        _check_same(hello, served)
        return served

    def _check_room(self, author: str) -> None:
        with self._lock:
            count = sum(user == author for user, _ in self._served)
        if count >= MOST_SESSIONS:
            raise UnavailableError(f"{shown(author)} has {count} sessions in use already; end some, or try again later")

    def _found(self, key: tuple[str, str]) -> ServedSession | None:
        """A session in memory; it is not forgotten before its new client has joined."""
        with self._lock:
            served = self._served.get(key)
            if served is None or served.is_deleted:
                return None
            served.idle_since = time.monotonic()
            return served

    def to_save(self, *, heartbeat: bool, everything: bool = False) -> list[Save]:
        """What has changed since the last call; with `heartbeat`, also that the other sessions are served.

        `everything` after a save that failed: all views are written again.
        """
        saves = []
        for served in self._all():
            if (served.is_changed or everything) and not served.is_deleted:
                served.is_changed = False
                view = served.view()
                saves.append(Save(served.record.id, view and {**view, "service": self.journal.identity}))
            elif heartbeat and not served.is_deleted:
                saves.append(Save(served.record.id, None))
        return saves

    def _all(self) -> list[ServedSession]:
        with self._lock:
            return list(self._served.values())

    def save(self, saves: Sequence[Save], now: float) -> list[tuple[ServedSession, str | None]]:
        """Write journal and views to the store, and forget idle sessions; the others with their status in the store."""
        self.journal.store_files(self.store)
        for one in saves:
            try:
                self.store.update(one.session_id, seen_at=now, view=one.view)
            except NotFoundError:  # deleted; the status says so
                continue
        with self._lock:
            for key, served in list(self._served.items()):
                if served.is_deleted or served.is_idle:
                    del self._served[key]
            known = list(self._served.values())
        statuses = self.store.status()  # asked after `known` was: what is missing in it was deleted
        return [(served, statuses.get(served.record.id)) for served in known]

    def follow(self, statuses: Iterable[tuple[ServedSession, str | None]]) -> None:
        """Stop and delete sessions as users have in the store."""
        for served, status in statuses:
            if status is None:
                served.is_deleted = True
            elif status == "stopped" and served.session.phase != "stopped":
                served.session.stop()
                served.is_changed = True

    def _check_not_served(self, record: OnlineRecord) -> None:
        """Two services must not serve one session; those on one machine are kept apart by the journal."""
        other = (record.view or {}).get("service", self.journal.identity) != self.journal.identity
        if other and record.seen_at is not None and self.clock() - record.seen_at < SEEN_S:
            raise UnavailableError(f"session {shown(record.name)} is served by the service of another machine")

    def _create(self, author: str, hello: Hello) -> OnlineRecord:
        if hello.space is None:
            raise NotFoundError(f"session {shown(hello.session)} does not exist; give its space to create it")
        space = Space.from_json(hello.space)
        if len(space.names) > MOST_PARAMETERS:
            raise InvalidInputError(
                f"the space has {len(space.names)} parameters; at most {MOST_PARAMETERS} are supported"
            )
        settings = OnlineSettings.from_json(hello.settings or {})
        OnlineSession(space, settings)  # raises if they do not fit together; nothing was stored yet
        return self.store.create(author, hello.session, {"space": space.to_json(), **settings.to_json()}, self.clock())

    def _restored(self, record: OnlineRecord) -> ServedSession:
        stored = dict(record.settings)
        space = Space.from_json(stored.pop("space"))  # type: ignore[arg-type]  # it checks its argument
        session = OnlineSession(space, OnlineSettings.from_json(stored))
        checked: dict[Config, Config] = {}  # there are many more samples than configurations

        def config_of(row: Sample) -> Config:
            known = checked.get(row.config)
            if known is None:
                known = checked[row.config] = space.check(row.config)
            return known

        rows = self.store.samples(record.id)
        session.replay((replace(row, config=config_of(row)) for row in rows), record.view)
        if record.stop_requested:
            session.stop()
        session.defer_decisions()
        return ServedSession(record, space, session, self.journal, self.decide)


def _check_same(hello: Hello, served: ServedSession) -> None:
    """Refuse a client whose program has other parameters or wants other settings than the session."""
    way_out = f"use another name, or delete the session: luthier online delete {served.record.id}"
    is_same = hello.space is None or hello.space == served.record.settings["space"]
    if not is_same and Space.from_json(hello.space or {}) != served.space:
        raise InvalidInputError(f"session {shown(hello.session)} exists with other parameters; {way_out}")
    for key, wanted in (hello.settings or {}).items():
        if key not in served.record.settings:
            OnlineSettings.from_json({key: wanted})  # raises: it is unknown
        if served.record.settings.get(key) != wanted:
            stored = shown(served.record.settings.get(key))
            raise InvalidInputError(
                f"session {shown(hello.session)} exists with {key} {stored}, not {shown(wanted)}; {way_out}"
            )
