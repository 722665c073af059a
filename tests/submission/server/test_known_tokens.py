import asyncio

import pytest

from luthier.server.authentication import AccessError, Principal
from luthier.submission.server.state import KEEP_S, KnownTokens

ADA = Principal("ada", "submitter", 1)


class Store:
    """Counts how often it is asked; each answer waits for a permission."""

    def __init__(self) -> None:
        self.asked = 0
        self.now = 0.0
        self.answers: Principal | None = ADA
        self.gate = asyncio.Event()
        self.gate.set()
        self.tokens = KnownTokens(lambda: self.now)

    async def check(self) -> Principal:
        self.asked += 1
        await self.gate.wait()
        if self.answers is None:
            raise AccessError("unknown")
        return self.answers

    async def user(self) -> Principal:
        return await self.tokens.user("Bearer x", self.check)


def test_many_requests_ask_once() -> None:
    async def scenario() -> None:
        store = Store()
        store.gate.clear()
        many = [asyncio.create_task(store.user()) for _ in range(100)]
        await asyncio.sleep(0)
        store.gate.set()
        assert await asyncio.gather(*many) == [ADA] * 100
        assert store.asked == 1
        store.now = KEEP_S - 0.1
        await store.user()
        assert store.asked == 1

    asyncio.run(scenario())


def test_a_slow_store_delays_one_request_only() -> None:
    async def scenario() -> None:
        store = Store()
        await store.user()
        store.now = KEEP_S + 1
        store.gate.clear()
        first = asyncio.create_task(store.user())
        await asyncio.sleep(0)
        assert await store.user() == ADA  # at once, while the first one waits
        assert not first.done()
        store.gate.set()
        assert await first == ADA
        assert store.asked == 2

    asyncio.run(scenario())


def test_a_revoked_token_is_refused_for_all() -> None:
    async def scenario() -> None:
        store = Store()
        await store.user()
        store.now, store.answers = KEEP_S + 1, None
        for _ in range(2):
            with pytest.raises(AccessError):
                await store.user()

    asyncio.run(scenario())


def test_no_old_answer_when_the_store_stays_away() -> None:
    async def scenario() -> None:
        store = Store()
        await store.user()
        store.now = 1000.0
        store.gate.clear()
        waiting = [asyncio.create_task(store.user()) for _ in range(2)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        store.answers = None
        store.gate.set()
        assert all(isinstance(one, AccessError) for one in await asyncio.gather(*waiting, return_exceptions=True))

    asyncio.run(scenario())
