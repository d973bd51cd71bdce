"""Identity and authorisation."""
