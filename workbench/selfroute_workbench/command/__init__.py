"""The bodies of the commands `selfroute demo`, `ask` and `evaluate`."""
