"""What tools are answered, the same whether the engine is asked in this process or over a socket."""
