"""The operator's commands of `barnabas`, found by entry points of the group `barnabas.commands`."""
