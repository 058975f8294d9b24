"""HTTP as our products serve it: a listener with limits, started and stopped, until a signal ends it."""
