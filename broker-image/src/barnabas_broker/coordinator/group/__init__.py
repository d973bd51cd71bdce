"""The group coordinator: who is in a group, what each member reads, and how far it has come."""
