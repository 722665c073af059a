"""Whatever people send, the server reads no file, starts no program and opens no connection for it.

All operations and pages are asked with hostile texts while an audit hook notes what the server does. The operations
and pages are taken from the application, and the settings of documents from their models: new ones are covered too.
"""

import http.client
import json
import re
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count as count_from
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel
from tests.online.server.online_samples import a_session
from tests.server.described import API, Operation, operations
from tests.server.server_fixtures import Running, server_of_its_own
from tests.server.test_api_schema import an_experiment

import luthier
from luthier.result.open_mpi import RULES_FILE, SWITCH
from luthier.spec.component import Component, ComponentParameter, ConfigFile
from luthier.spec.config_files import FORMATS
from luthier.spec.experiment_file import AllocationSettings, ExperimentFile, Settings

SECRET = "the text of a file that nobody may see"

HARMLESS = re.compile(
    r"object\.__getattr__|object\.__setattr__|sys\._getframe|sys\._current_frames|builtins\.id|gc\..*|time\.sleep|"
    r"_thread\.start_new_thread|_thread\.start_joinable_thread|sqlite3\..*|socket\.__new__|code\.__new__|"
    r"function\.__new__|cpython\..*|marshal\.dumps|sys\.set_asyncgen_hooks_.*|sys\.monitoring.*|re\..*"
)
"""Events that say nothing about what is outside of the process."""

NAMES = ("/proc/self/environ", "../secret.yaml", "os:system")
"""Hostile texts: files, and what could be imported."""


@dataclass
class Watch:
    """Notes what the server's threads do, and keeps it from happening: the client's own thread is left out."""

    allowed: re.Pattern[str]
    client: int = 0
    is_on: bool = False
    seen: set[str] = field(default_factory=set)

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.is_on or threading.get_ident() == self.client or HARMLESS.fullmatch(event):
            return
        what = f"{event} {arguments[0] if arguments else ''!s:.200}"
        if not self.allowed.match(what):
            self.seen.add(what)
            raise PermissionError(f"not allowed in this test: {what}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        self.client, self.is_on = threading.get_ident(), True
        try:
            yield
        finally:
            self.is_on = False


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server keeps what it has, and a file that it must not read."""
    found = tmp_path_factory.mktemp("reads nothing")
    (found / "secret.yaml").write_text(SECRET)
    return found


@pytest.fixture(scope="module")
def watch(folder: Path) -> Watch:
    """What the server may do: use its own packages, its library of components, its store and scratch files."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    archive = stdlib.with_name(f"{stdlib.name.replace('.', '')}.zip")  # where Python looks for modules, too
    packages = {Path(luthier.__file__).parent, stdlib, archive, Path(sysconfig.get_path("purelib"))}
    read = "|".join(re.escape(str(one)) for one in packages)
    kept, scratch = re.escape(str(folder / "luthier")), re.escape(tempfile.gettempdir())
    found = Watch(
        re.compile(
            rf"(open|os\.listdir) ({read})($|/.*)|"
            rf"compile b'from jinja2\.runtime|exec <code object <module> at \w+, file .({read})/|"  # own templates
            rf"(open|tempfile\.mkstemp) {kept}/components(/[\w.-]+)?$|"
            rf"(open|shutil\.rmtree|os\.\w+) {kept}/(runs|workers)/[0-9a-f]{{32}}[\w.-]*(/\w+)?$|"  # of what is deleted
            rf"(pathlib\.Path\.r?glob|glob\.glob|os\.scandir|os\.listdir) {kept}/components$|"
            rf"os\.(rename|remove|mkdir) {kept}/(components/[\w.-]+|components|work)$|"
            rf"open /proc/\d+/stat$|"  # whether the owner of an experiment is alive
            rf"(open|tempfile\.mkdtemp|shutil\.rmtree|os\.\w+) {scratch}/tmp\w+(/runs\.parquet.*)?$|"
            rf"os\.(remove|unlink|rmdir) (runs\.parquet|tmp\w+)$"  # the same, by the name in its folder
        )
    )
    sys.addaudithook(found)  # for good: a hook cannot be removed, only be told to do nothing
    return found


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    with server_of_its_own(folder) as running:
        yield running


def documents(text: str) -> Iterator[dict[str, object]]:
    """Experiments in which a text stands wherever one can stand."""
    parameter = {"env_var": True, "type": "str", "default": text, "values": [text, "b"]}
    component: dict[str, object] = {"parameters": {"LEVEL": parameter}}
    whole: dict[str, object] = {
        "experiment": {"name": text, "script": f"cat {text}", "measure": ["wall"]},
        "definitions": {
            "knob": {**component, "header": text, "command": text, "ld_preload": text, "description": text}
        },
        "components": {"knob": {}},
    }
    yield whole
    for name in (RULES_FILE, SWITCH, "LD_PRELOAD", "PATH", "LUTHIER_STORE", "PYTHONPATH"):
        parameters = {name: parameter, SWITCH: {**parameter, "default": "1"}} if name != SWITCH else {name: parameter}
        yield {**whole, "definitions": {"knob": {"parameters": parameters}}}
    for place in fields(Settings):
        yield {**whole, "experiment": {"script": "true", **place(text)}}
    for place in fields(AllocationSettings):
        yield {**whole, "experiment": {"script": "true", "runner": "psij:pbs", "allocation": place(text)}}
    for runner in ("slurm", "psij:pbs", "psij:local", "psij:antigravity"):
        yield {**whole, "experiment": {"script": "#SBATCH -x\ntrue", "runner": runner, "timeout": "60"}}
    for place in fields(Component):
        yield {**whole, "definitions": {"knob": {**component, **place(text)}}}
    for place in fields(ComponentParameter):
        yield {**whole, "definitions": {"knob": {"parameters": {"LEVEL": {**parameter, **place(text)}}}}}
    files = [{"path": "x", "text": text, **place(text)} for place in fields(ConfigFile)]
    files += [{"path": "x", "text": text, "format": form, "set": {"a": text}} for form in FORMATS]
    for file in files:
        yield {**whole, "definitions": {"knob": {**component, "files": [file]}}}
    for place in fields(ExperimentFile):
        yield {**whole, **place(text)}


@dataclass(frozen=True)
class Place:
    """A setting of a document."""

    name: str

    def __call__(self, text: str) -> dict[str, object]:
        forms: dict[str, object] = {"parameters": {text: {"env_var": True}}, "components": {text: {}}}
        return {self.name: forms.get(self.name, text)}


@dataclass(frozen=True)
class InList(Place):
    """The same with a list, or with a setting of its own."""

    is_mapping: bool

    def __call__(self, text: str) -> dict[str, object]:
        return {self.name: {text: text} if self.is_mapping else [text]}


def fields(model: type[BaseModel]) -> Iterator[Place]:
    for name, field_ in model.model_fields.items():
        yield Place(name)
        kind = str(field_.annotation)
        if "list" in kind or "dict" in kind:
            yield InList(name, "dict[" in kind and "list[" not in kind)


def texts(names: Sequence[str]) -> Iterator[str]:
    """Hostile YAML, as experiments and as components."""
    for name in names:
        for document in documents(name):
            yield json.dumps(document)
            definitions = document.get("definitions")
            if isinstance(definitions, dict):
                yield json.dumps({"components": definitions})
        for tag in ("!include", "!!python/name:", "!!python/object/apply:os.system", "!!binary", "!!timestamp"):
            yield f"components: {tag} {name}"


def requests(operation: Operation, number: int) -> Iterator[tuple[str, object, dict[str, str]]]:
    """Path, body and headers of hostile requests for one operation."""
    good = re.sub(r"\{(experiment|session)_id\}", str(number), operation.template)
    others = [one for one in operation.parameters if one["name"] not in ("experiment_id", "session_id")]
    for name in NAMES:
        path, query, headers = good, {}, {}
        for parameter in others:
            key = str(parameter["name"])
            if parameter["in"] == "path":
                path = path.replace(f"{{{key}}}", quote(name, safe=""))
            elif parameter["in"] == "query":
                query[key] = name
            else:
                headers[key] = name
        yield path, operation.body, {}
        yield f"{path}?{urlencode({**query, 'p.LEVEL': name})}", operation.body, headers
    body = operation.body
    if isinstance(body, dict):
        for key in body:
            path = re.sub(r"\{\w+\}", "knob", good)
            names = NAMES if operation.name.startswith("check_") else NAMES[:1]  # the others check in the same way
            for text in texts(names) if key == "yaml" else NAMES:
                yield path, {**body, key: text}, {}
            for document in documents(NAMES[0]) if key in ("document", "experiment") else ():
                yield path, {"document": document} if key == "document" else document, {}


def ask(server: Running, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> bytes:
    """What the server answers; of a stream, the first line."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    sent = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json", **(headers or {})}
    connection.request(method, path, None if body is None else json.dumps(body), sent)
    with connection.getresponse() as answer:
        is_stream = answer.headers.get_content_type() == "text/event-stream"
        said = answer.readline() if is_stream else answer.read()
    connection.close()
    assert answer.status < 500, (method, path, body, said)
    return said


def pages(server: Running, text: str) -> Iterator[tuple[str, str]]:
    """Every page and file that is not part of the API, with a text wherever its address takes one."""
    for route in server.app.routes:
        if isinstance(route, APIRoute) and not route.path.startswith(API):
            path = re.sub(r"\{\w+(:path)?\}", quote(text, safe=""), route.path)
            for method in (route.methods or set()) - {"HEAD"}:
                yield method, f"{path}?{urlencode({'token': text, 'next': text})}"


def walk(server: Running, number: int) -> None:
    by_danger = sorted(operations(server), key=lambda one: (one.method == "DELETE", one.name))
    for operation in by_danger:
        ask(server, operation.method, operation.path, operation.body)
        for path, body, headers in requests(operation, number):
            said = ask(server, operation.method, path, body, headers)
            assert SECRET.encode() not in said
    for text in (*NAMES, "1"):
        for method, path in pages(server, text):
            assert SECRET.encode() not in ask(server, method, path)


def warm_up(server: Running, number: int) -> None:
    """Let the server import what it needs, with requests that anybody makes."""
    for operation in operations(server):
        if operation.method == "GET":
            path = re.sub(r"(experiments|online)/\d+", rf"\1/{number}", operation.path)
            ask(server, operation.method, path)
    for form in ("csv", "json", "parquet"):
        ask(server, "GET", f"{API}/experiments/{number}/export?format={form}")
    for document in documents("plain"):
        ask(server, "POST", f"{API}/experiments/check", {"yaml": json.dumps(document)})
    for _, path in pages(server, "1"):
        ask(server, "GET", path)


def test_nothing_outside_is_touched_whatever_is_sent(server: Running, watch: Watch) -> None:
    token = server.add_user("root", "admin")
    with an_experiment(server, token) as number:
        server = replace(server, token=token)
        sessions = (a_session(server.store, f"session {count}").id for count in count_from(1))
        assert number() in sessions  # one with the same number
        warm_up(server, number())
        with watch.watching():
            walk(server, number())
    assert sorted(watch.seen) == []


def test_the_watch_sees_what_it_is_for(watch: Watch, folder: Path) -> None:
    """The test above can fail."""
    seen: list[str] = []

    def work() -> None:
        harms: list[Callable[[], object]] = [
            (folder / "secret.yaml").read_text,
            lambda: subprocess.run(["true"], check=True),
            lambda: socket.create_connection(("127.0.0.1", 9)),
        ]
        for harm in harms:
            try:
                harm()
            except PermissionError as error:
                seen.append(str(error))

    thread = threading.Thread(target=work)
    with watch.watching():
        thread.start()
        thread.join()
    assert [word in text for word, text in zip(("secret.yaml", "Popen", "socket"), seen, strict=True)] == [True] * 3
    watch.seen.clear()
