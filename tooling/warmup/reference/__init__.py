"""A small torch model whose linear layers call FlashInfer operations: a smoke test warms it up in an engine's place."""
