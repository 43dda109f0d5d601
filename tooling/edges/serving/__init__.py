"""Model servers: starting them as a process group or a container, watching, asking and ending them."""
