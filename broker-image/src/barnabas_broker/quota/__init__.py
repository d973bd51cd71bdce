"""How much clients use, against what they may. Pure: amounts and times come in."""
