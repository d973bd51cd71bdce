"""The admin client: its cores with messages alone, its shell against brokers that misbehave."""
