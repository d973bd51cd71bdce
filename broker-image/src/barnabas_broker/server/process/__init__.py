"""The process and its event loop: tasks, scheduling, threads, signals, logs."""
