"""All commands, one file a group."""

import typer

from consumer.cli import config, dead, doctor, jobs, run, topology

app = typer.Typer(
    name="consumer",
    help="A RabbitMQ consumer daemon for Python jobs that you can't afford to lose.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run.run)
app.command("submit")(jobs.submit)
app.command("status")(jobs.status)
app.command("cancel")(jobs.cancel)
app.command("doctor")(doctor.doctor)
app.add_typer(topology.app, name="topology")
app.add_typer(config.app, name="config")
app.add_typer(dead.app, name="dead")
