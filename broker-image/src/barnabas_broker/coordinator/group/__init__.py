"""The group coordinator: members of groups, their assignments, and committed offsets."""
