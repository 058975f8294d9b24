"""How a topology runs, pure: operators wired into a task, its time and its timers."""
