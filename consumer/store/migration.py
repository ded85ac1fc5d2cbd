"""The scripts that build the tables, in order. Each database records by name those that it has."""

from importlib import resources


def scripts(dialect: str) -> list[tuple[str, str]]:
    """Name and text of each script for `sqlite` or `postgres`; a semicolon in them ends a statement, always."""
    folder = resources.files("consumer.store") / "migrations"
    files = [file for file in folder.iterdir() if file.name.endswith(f".{dialect}.sql")]
    return sorted((file.name, file.read_text("utf-8")) for file in files)
