"""What the package brings for trying it out: documents with questions, and a reader that needs no key."""
