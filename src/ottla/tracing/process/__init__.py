"""Business processes: what is expected (`definition`), what is judged (`machine`, PURE), and how it is read
(`watching`)."""

from ottla.tracing.process.definition import Process, Step, load_process, parse_process
from ottla.tracing.process.machine import Cut, Machine
from ottla.tracing.process.report import PROBLEMS, Case, ProcessReport, StepSeen
from ottla.tracing.process.watching import ProcessWatch

__all__ = [
    "PROBLEMS",
    "Case",
    "Cut",
    "Machine",
    "Process",
    "ProcessReport",
    "ProcessWatch",
    "Step",
    "StepSeen",
    "load_process",
    "parse_process",
]
