"""A cable that can be pulled: two network namespaces, the worker's and the server's (ip-netns(8), veth(4))."""

import os
import subprocess

SERVER, WORKER = "10.9.8.1", "10.9.8.2"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


class Link:
    """Exists while the context lasts. A command after `worker` or `server` runs at that end of it."""

    def __init__(self) -> None:
        self.names = [f"spoolrun-{end}-{os.getpid()}" for end in ("server", "worker")]
        self.server, self.worker = [("ip", "netns", "exec", name) for name in self.names]

    def __enter__(self) -> "Link":
        for name in self.names:
            ip("netns", "add", name)
        server, worker = self.names
        ip("link", "add", "cable", "netns", server, "type", "veth", "peer", "name", "cable", "netns", worker)
        for name, address in zip(self.names, (SERVER, WORKER)):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            ip("netns", "delete", name)

    def pull(self) -> None:
        """Takes the network from the worker's host."""
        ip("-n", self.names[1], "link", "set", "cable", "down")

    def plug(self) -> None:
        ip("-n", self.names[1], "link", "set", "cable", "up")

    def connections(self) -> list[str]:
        """The worker's ports of its connections to the server."""
        return [line.split()[3].rpartition(":")[2] for line in self.sockets("state", "established")]

    def reset(self, port: str) -> None:
        """Ends a connection with RST (ss(8), -K)."""
        self.sockets("--kill", "dst", WORKER, "dport", "=", port)

    def sockets(self, *words: str) -> list[str]:
        command = [*self.server, "ss", "--tcp", "--numeric", "--no-header", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
