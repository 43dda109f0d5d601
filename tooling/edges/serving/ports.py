"""TCP ports of this machine."""

from __future__ import annotations

import socket


def find_free_port() -> int:
    """A port on which nothing listens now; the system does not hand it out again at once."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_port_taken(port: int) -> bool:
    """Whether anything listens on that port, on any address of this machine."""
    return any(_refused(family, address, port) for family, address in _addresses())


def _addresses() -> list[tuple[socket.AddressFamily, str]]:
    return [(socket.AF_INET, ""), *([(socket.AF_INET6, "::")] if socket.has_ipv6 else [])]


def _refused(family: socket.AddressFamily, address: str, port: int) -> bool:
    try:
        probe = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        return False  # a kernel without IPv6
    with probe:
        # Connections that still wait for their end are no listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family is socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as cause:
            return cause.errno not in {97, 99}  # EAFNOSUPPORT, EADDRNOTAVAIL: no such address here
        return False
