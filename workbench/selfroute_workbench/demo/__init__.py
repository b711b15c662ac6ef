"""Documents with questions, and a reader that needs no key, to try the package out."""
