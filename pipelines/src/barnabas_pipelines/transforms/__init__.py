"""From table to table: no session, no reading, no writing."""
