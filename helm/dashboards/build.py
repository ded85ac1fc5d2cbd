"""Writes consumer.json, the Grafana dashboard: `python helm/dashboards/build.py`. A test keeps it current."""

import itertools
from dataclasses import dataclass
from pathlib import Path

from grafana_foundation_sdk.builders import common, dashboard, prometheus, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, StackingMode, TooltipDisplayMode
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh

TARGET = Path(__file__).with_name("consumer.json")
SOURCE = DataSourceRef(type_val="prometheus", uid="$datasource")
POD = 'namespace="$namespace",job="$job"'
QUEUE = f'{POD},queue=~"$queue"'


@dataclass(frozen=True)
class Graph:
    """`queries` maps legends to PromQL. Nothing is stacked unless the parts add up to a whole."""

    title: str
    unit: str
    queries: dict[str, str]
    description: str = ""
    stacked: bool = False


def rate(metric: str, by: str, labels: str = QUEUE) -> str:
    return f"sum by ({by}) (rate({metric}{{{labels}}}[$__rate_interval]))"


def quantiles(histogram: str) -> dict[str, str]:
    buckets = rate(f"{histogram}_bucket", "le")
    return {f"p{q}": f"histogram_quantile(0.{q}, {buckets})" for q in (50, 95, 99)}


def queue_depth(role: str) -> str:
    """Every pod sees the same queue, so the largest figure is the true one and a sum is wrong."""
    return f'max by (queue) (consumer_queue_messages_ready{{{QUEUE},role="{role}"}})'


def age(timestamp: str) -> str:
    return f"time() - min by (pod) ({timestamp}{{{POD}}})"


ROWS: dict[str, list[Graph]] = {
    "Backlog and throughput": [
        Graph("Messages ready", "short", {"{{queue}}": queue_depth("work")}, "Waiting for a place here."),
        Graph("Received", "ops", {"{{queue}}": rate("consumer_messages_received_total", "queue")}),
        Graph(
            "Settled by disposition",
            "ops",
            {"{{disposition}}": rate("consumer_jobs_settled_total", "disposition")},
            "How each delivery ended; the parts add up to all of them.",
            stacked=True,
        ),
        Graph(
            "Consumers",
            "short",
            {"{{queue}}": f'max by (queue) (consumer_queue_consumers{{{QUEUE},role="work"}})'},
            "As the broker counts them.",
        ),
    ],
    "Retries": [
        Graph("Retries by kind", "ops", {"{{kind}}": rate("consumer_job_retries_total", "kind")}),
        Graph("Retries by reason", "ops", {"{{reason}}": rate("consumer_job_retries_total", "reason")}),
        Graph(
            "Retries per settled delivery",
            "percentunit",
            {
                "{{queue}}": f"{rate('consumer_job_retries_total', 'queue')}"
                f" / ({rate('consumer_jobs_settled_total', 'queue')} > 0)"
            },
        ),
        Graph(
            "Handler exceptions",
            "ops",
            {"{{kind}}: {{error_type}}": rate("consumer_handler_exceptions_total", "kind, error_type")},
        ),
    ],
    "Dead letters": [
        Graph("Dead letters by code", "ops", {"{{code}}": rate("consumer_dead_letters_total", "code")}),
        Graph("Dead letters by kind", "ops", {"{{kind}}": rate("consumer_dead_letters_total", "kind")}),
        Graph(
            "Dead letters waiting",
            "short",
            {"{{queue}}": queue_depth("dead")},
            "Includes what the broker dead-lettered by itself.",
        ),
    ],
    "Latency": [
        Graph("Queue wait", "s", quantiles("consumer_queue_wait_seconds"), "From the last publish to the start."),
        Graph("Run", "s", quantiles("consumer_job_seconds"), "In the child."),
        Graph(
            "End to end",
            "s",
            quantiles("consumer_end_to_end_seconds"),
            "From submission to the final outcome.",
        ),
    ],
    "Pool": [
        Graph(
            "Jobs running, and slots",
            "short",
            {
                "running": f"sum(consumer_jobs_running{{{QUEUE}}})",
                "slots": f"sum(consumer_slots{{{QUEUE}}})",
            },
        ),
        Graph(
            "Children",
            "short",
            {"{{pool}}": f"sum by (pool) (consumer_children{{{POD}}})"},
            "cpu runs def handlers, io async def ones.",
        ),
        Graph(
            "Busy children",
            "percentunit",
            {
                "{{pool}}": f"sum by (pool) (consumer_child_busy_ratio{{{POD}}} * consumer_children{{{POD}}})"
                f" / sum by (pool) (consumer_children{{{POD}}})"
            },
        ),
        Graph("Child exits", "ops", {"{{pool}}: {{reason}}": rate("consumer_child_exits_total", "pool, reason", POD)}),
        Graph("CPU of jobs", "short", {"{{kind}}": rate("consumer_job_cpu_seconds_sum", "kind")}, "In cores."),
    ],
    "What is held up": [
        Graph(
            "Open breakers",
            "short",
            {"{{breaker}} {{kind}}": f"max by (breaker, kind) (consumer_breaker_open{{{POD}}}) > 0"},
            "Nothing is taken in, or one kind cools down.",
        ),
        Graph(
            "Oldest running job",
            "s",
            {"{{pod}}": f"time() - min by (pod) (consumer_oldest_running_start_timestamp_seconds{{{QUEUE}}} > 0)"},
        ),
        Graph(
            "Stuck rows",
            "short",
            {
                "{{status}}": f"max by (status) (consumer_store_stuck_jobs{{{POD}}})",
                "follow-ups of {{queue}}": f"max by (queue) (consumer_store_unsent_follow_ups{{{QUEUE}}})",
            },
            "No delivery has come for them; the broker has not taken the follow-ups.",
        ),
        Graph(
            "Follow-ups published",
            "ops",
            {"{{result}}": rate("consumer_publishes_total", "result", f'{POD},target="follow_up"')},
        ),
    ],
    "Broker and store": [
        Graph(
            "Broker connected and blocked",
            "short",
            {
                "{{pod}} connected": f"min by (pod) (consumer_broker_connected{{{POD}}})",
                "{{pod}} blocked": f"max by (pod) (consumer_broker_blocked{{{POD}}})",
            },
        ),
        Graph(
            "Publishes",
            "ops",
            {"{{target}}: {{result}}": rate("consumer_publishes_total", "target, result", POD)},
        ),
        Graph(
            "Store operations",
            "ops",
            {"{{operation}}: {{result}}": rate("consumer_store_operations_total", "operation, result", POD)},
        ),
        Graph(
            "Store latency, p95",
            "s",
            {
                "{{operation}}": "histogram_quantile(0.95, "
                f"{rate('consumer_store_operation_seconds_bucket', 'operation, le', POD)})"
            },
        ),
        Graph(
            "Since the event loop turned, and the queues were read",
            "s",
            {
                "{{pod}} loop": age("consumer_event_loop_last_tick_timestamp_seconds"),
                "{{pod}} queues": age("consumer_queue_poll_last_success_timestamp_seconds"),
            },
        ),
    ],
}


def panel(graph: Graph, number: int, width: int) -> timeseries.Panel:
    built = (
        timeseries.Panel()
        .id(number)
        .title(graph.title)
        .description(graph.description)
        .datasource(SOURCE)
        .unit(graph.unit)
        .min(0)
        .fill_opacity(30 if graph.stacked else 10)
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
        .legend(common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).show_legend(True))
        .height(8)
        .span(width)
    )
    if graph.stacked:
        built.stacking(common.StackingConfig().mode(StackingMode.NORMAL))
    for letter, (legend, expression) in zip("ABC", graph.queries.items(), strict=False):
        built.with_target(prometheus.Dataquery().expr(expression).legend_format(legend).ref_id(letter))
    return built


def choice(label: str, labels: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(label)
        .datasource(SOURCE)
        .query(f"label_values(consumer_queue_consumers{{{labels}}}, {label})")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    )


def build() -> str:
    board = (
        dashboard.Dashboard("Consumer")
        .uid("consumer")
        .description("Backlog, retries, dead letters, latency and health of the job consumers.")
        .tags(["consumer", "rabbitmq"])
        .time("now-3h", "now")
        .refresh("1m")
        .timezone("browser")
        .with_variable(dashboard.DatasourceVariable("datasource").type("prometheus"))
        .with_variable(choice("namespace", ""))
        .with_variable(choice("job", 'namespace="$namespace"'))
        .with_variable(choice("queue", POD).include_all(True).multi(True))
    )
    numbers = itertools.count(1)
    for title, graphs in ROWS.items():
        board.with_row(dashboard.Row(title).id(next(numbers)))
        for graph in graphs:
            board.with_panel(panel(graph, next(numbers), 24 // min(len(graphs), 4)))
    return JSONEncoder(sort_keys=True, indent=1).encode(board.build()) + "\n"


if __name__ == "__main__":
    TARGET.write_text(build(), encoding="utf-8")
