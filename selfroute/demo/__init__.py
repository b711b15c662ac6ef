"""What the `selfroute` command is made of: documents and questions of its own, a reader that needs no key."""
