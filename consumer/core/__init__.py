"""The pure core: values and decisions. It imports no asyncio, clock, randomness, environment, broker or driver."""
