"""The addresses: what a request may say, who answers it, and the document that describes it all."""
