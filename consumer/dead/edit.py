"""One dead letter with its payload put right: checked by the kind's own model, then sent to work."""

from dataclasses import replace

from config.settings import Settings
from consumer.core.correction import corrected
from consumer.core.decode import DecodeRules, decode
from consumer.core.errors import SettingsError
from consumer.core.job import Message, Refusal
from consumer.core.letter_index import Wanted
from consumer.core.letters import Letter, State
from consumer.core.parcels import Copier
from consumer.dead import looks
from consumer.dead.desk import Removal, desk
from consumer.operations import closing_store, publishing
from consumer.wiring import pool_of, rules_of, topology_of
from consumer.worker.tried import objection


async def edit(settings: Settings, letter_id: str, payload: bytes) -> Letter:
    """Return the letter that it was. Raise SettingsError, with nothing changed, where the payload won't do."""
    rules = rules_of(settings, "").decode
    copier = Copier(topology_of(settings), "edit")
    async with closing_store(settings) as store:
        [letter] = await looks.dead(store.letters, settings.queue, [letter_id])
        await _check(settings, corrected(letter.message, payload, rules), rules)
        async with publishing(settings) as publisher, desk(settings, store) as at:

            async def send(found: Letter) -> None:
                await publisher.publish(copier.redrive(corrected(found.message, payload, rules)))

            await Removal(at, State.EDITED, send).take(Wanted(letter.queue, ids=frozenset({letter_id})))
    return replace(letter, state=State.EDITED)


async def _check(settings: Settings, message: Message, rules: DecodeRules) -> None:
    job = decode(message, rules)
    if isinstance(job, Refusal):
        raise SettingsError(f"the letter would be refused again ({job.code}): {job.detail}; nothing was changed")
    wrong = await objection(pool_of(settings), job.kind, job.body, job.payload)
    if wrong:
        raise SettingsError(f"the payload is not one of kind '{job.kind}' ({wrong}); nothing was changed")
