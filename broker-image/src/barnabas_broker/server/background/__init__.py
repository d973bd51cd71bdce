"""Work beside requests: cleaning, moves between log directories, retention, leader balance."""
