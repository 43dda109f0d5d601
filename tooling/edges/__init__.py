"""Everything that touches the world, one module per outside thing."""
