"""What the pages about on-line tuning show, works."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.online.serving import PATIENCE_S, Serving

DOCS = Path(__file__).parents[2] / "docs"


def test_the_conversation_of_the_protocol_page(served: Serving) -> None:
    text = (DOCS / "online-protocol.md").read_text(encoding="utf-8")
    conversation = re.search(r"```\n(-> .*?)```", text, re.DOTALL)
    assert conversation is not None
    lines = conversation[1].splitlines()
    assert len(lines) == 10
    with served.wire() as wire:
        for asked, answered in zip(lines[::2], lines[1::2], strict=True):
            wire.send(asked.removeprefix("-> ").encode() + b"\n")
            assert json.loads(wire.line()) == json.loads(answered.removeprefix("<- "))
        assert wire.is_closed()


def test_the_error_of_the_protocol_page(served: Serving) -> None:
    text = (DOCS / "online-protocol.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r'<- (\{"ok":false.*)', text)
    with served.wire() as wire:
        wire.hello()
        assert wire.ask(op="report", value="fast") == json.loads(shown)


def test_the_python_of_the_page() -> None:
    first, *others = re.findall(r"```python\n(.*?)```", (DOCS / "online.md").read_text(encoding="utf-8"), re.DOTALL)
    process = "def process(batch, block, order):\n    sum(range(block))\n"
    before = f"batches = range(60)\n{process}def run(config):\n    return 1.0\n"
    remote = [block for block in others if "RemoteTuner" in block]
    assert len(remote) == 1
    code = before + "\n".join([first, *(block for block in others if block not in remote)])
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert re.fullmatch(r"\{'block': \d+, 'order': '\w+'\}\n", ended.stdout)
