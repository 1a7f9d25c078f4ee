import asyncio

from cc_session import PoolLimits, SessionPool, sealed_options

CITIES = ["Paris", "Tokyo", "Nairobi", "Lima"]


async def main() -> None:
    async with SessionPool(sealed_options(system_prompt="Answer in one word."), limits=PoolLimits(size=2)) as pool:
        # Independent questions, each in a separate conversation.
        turns = await asyncio.gather(*(pool.run(f"In which country is {city}?") for city in CITIES))
        for city, turn in zip(CITIES, turns, strict=True):
            print(f"{city}: {turn.text}")

        # A conversation, in a process that does not remember the questions above.
        async with pool.lease(model="haiku") as session:
            await session.run("Think of a colour.")
            print((await session.run("Which one is it?")).text)

        stats = pool.stats()
        print(f"{stats.leases} conversations in {stats.starts} processes")


asyncio.run(main())
