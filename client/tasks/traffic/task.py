"""Client task of the traffic task."""

from client.tasks.registry import ClientTask, reading
from client.tasks.traffic.data.series import SCHEMA, SUFFIXES, is_published, write_series
from common.registry import imported
from common.tasks.traffic.task import TASK as SPEC

TASK = ClientTask(
    spec=SPEC,
    unit=("sensor", "sensors"),
    schema=SCHEMA,
    table="sensors.csv",
    demo_units=24,
    read=reading("client.tasks.traffic.data.reader:read_series"),
    write=write_series,
    learner=imported("client.tasks.traffic.learner:TrafficLearner"),
    published=is_published,
    generate=imported("client.tasks.traffic.data.generator:demo_series"),
    variants={
        "breaking": imported("client.tasks.traffic.data.generator:breaking_series"),
        "streets": imported("client.tasks.traffic.data.generator:street_series"),
    },
    suffixes=SUFFIXES,
    summarize=imported("client.tasks.traffic.data.reader:summarize"),
)
