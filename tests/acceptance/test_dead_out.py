"""What is thrown away, put right, or carried to a file and back."""

import json
from pathlib import Path

from consumer.core.letters import State
from tests.support.command import Done, consumer
from tests.support.daemon import Daemon
from tests.support.graves import Graves
from tests.support.rows import all_are
from tests.support.settings import settings

STRICT = {"day": "2024-05-01", "count": 3}


async def dead(chosen: dict[str, str], *arguments: str, stdin: bytes = b"") -> Done:
    return await consumer("dead", *arguments, settings=chosen, stdin=stdin)


async def test_a_purge_shows_what_would_go_and_does_it_when_told_and_says_so_in_the_log(
    amqp_url: str, sqlite_url: str
) -> None:
    chosen = settings(amqp_url, sqlite_url)
    async with Graves(amqp_url, sqlite_url) as graves:
        stay = await graves.bury(["s0", "s1"], kind="whoami")
        gone = await graves.bury([f"k{number}" for number in range(5)])
        view = await dead(chosen, "purge", "--kind", "echo")
        assert view.code == 0
        assert view.out.splitlines()[-1].split() == ["would_be_purged", "5"]
        assert (await graves.depth(), await graves.listed()) == (7, 7)
        done = await dead(chosen, "purge", "--kind", "echo", "--yes", "--json")
        assert (done.code, json.loads(done.out)) == (0, {"purged": 5})
        [line] = [json.loads(line) for line in done.err.splitlines()]
        assert (line["event"], line["which"], line["count"]) == ("dead letters purged", "kind=echo", 5)
        assert "@" in line["by"]
        assert line["timestamp"]
        [letter] = await graves.index.letters([gone[3]])
        assert letter.state is State.PURGED
        assert [found.id for found in await graves.dig_up(2)] == stay


async def test_an_edited_letter_runs_with_the_new_payload_and_a_wrong_one_changes_nothing(
    amqp_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    chosen = settings(amqp_url, sqlite_url)
    async with Graves(amqp_url, sqlite_url) as graves:
        ids = await graves.bury(["a", "b", "c"], "strict", payload={"day": "soon", "count": 3})
        wrong = await dead(chosen, "edit", ids[1], "--payload", '{"day": "soon", "count": 3}')
        assert (wrong.code, wrong.out) == (2, "")
        assert wrong.err.count("\n") == 1
        assert "the payload is not one of kind 'strict' (invalid_payload: day: date_parsing)" in wrong.err
        assert (await graves.depth(), await graves.listed(), await graves.work()) == (3, 3, 0)
        (tmp_path / "right.json").write_text(json.dumps(STRICT))
        right = await dead(chosen, "edit", ids[1], "--payload", f"@{tmp_path}/right.json", "--json")
        assert (right.code, json.loads(right.out)["state"]) == (0, "edited")
        async with Daemon(chosen):
            [row] = (await all_are("succeeded", sqlite_url, 1)).values()
        assert (row["key"], row["generation"], row["result"]) == ("b", 1, "3")
        again = await dead(chosen, "edit", ids[1], "--payload", json.dumps(STRICT))
        assert (again.code, f"letter {ids[1]} is edited" in again.err) == (2, True)
        assert [found.id for found in await graves.dig_up(2)] == [ids[0], ids[2]]


async def test_what_was_exported_and_purged_is_imported_as_it_was_and_once(
    amqp_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    chosen = settings(amqp_url, sqlite_url)
    file = tmp_path / "letters.jsonl"
    async with Graves(amqp_url, sqlite_url) as graves:
        ids = await graves.bury([f"k{number}" for number in range(60)])
        before = await graves.index.letters(ids)
        assert (await dead(chosen, "export", "--output", str(file))).code == 0
        assert (await dead(chosen, "purge", "--all", "--yes")).code == 0
        assert await graves.depth() == 0
        cut = tmp_path / "cut.jsonl"
        cut.write_text(file.read_text()[:-50])
        refused = await dead(chosen, "import", str(cut))
        assert refused.code == 2
        assert "cut.jsonl, line 60 is no exported letter: it is not JSON; nothing was imported" in refused.err
        assert await graves.depth() == 0
        for imported, known in ((60, 0), (0, 60)):
            done = await dead(chosen, "import", str(file), "--json")
            assert json.loads(done.out) == {"imported": imported, "there_already": known}
        after = await graves.index.letters(ids)
        assert [letter.message for letter in after] == [letter.message for letter in before]
        assert [(x.kind, x.code, x.group, x.dead_at) for x in after] == [
            (x.kind, x.code, x.group, x.dead_at) for x in before
        ]
        assert {letter.state for letter in after} == {State.DEAD}
        died = {letter.id: letter.dead_at for letter in before}
        times = [died[letter.id] for letter in await graves.dig_up(60)]
        assert times == sorted(died.values())
