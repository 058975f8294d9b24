from ottla.kernel.request_runs_pure import Run as Run
from ottla.kernel.request_runs_pure import Times as Times
