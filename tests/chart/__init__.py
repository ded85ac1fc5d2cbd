"""The image, the chart, its alerts and its dashboard. Needs no cluster: everything is rendered and checked here."""
