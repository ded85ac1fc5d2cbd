"""The image, the chart, its alerts and its dashboard: rendered and checked without a cluster."""
