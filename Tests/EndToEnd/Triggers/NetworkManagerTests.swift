import Glibc
import TestSupport
import Testing

/// `--unmetered-only` and the real NetworkManager, which has a bus, a network and a link of its own.
@Suite(
  .enabled("needs NetworkManager, root, a network and a mount namespace") {
    try await Need.areMet(
      .program("NetworkManager"), .program("nmcli"), .program("dbus-daemon"), .program("busctl"), .networks, .mounts)
  })
struct NetworkManagerTests {
  @Test func `nothing starts on a metered connection`() async throws {
    let scene = try Scene.echoing()
    // Outside its network, where our server is; the bus is reached by its socket.
    let bus = "\(scene.tools)/bus"
    let environment = scene.withProgramOnPath.merging(["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(bus)"]) { $1 }
    func worker() async throws -> CommandResult {
      try await run(
        ["\(scene.tools)/spoolrun", "--once", "--unmetered-only", scene.spool.root], environment: environment)
    }
    func tell(_ arguments: String...) async throws {
      let result = try await run(["/usr/bin/env", "nmcli"] + arguments, environment: environment)
      guard result.status == .exited(0) else { throw TestSupportError("nmcli \(arguments): \(result)") }
    }

    try scene.spool.drop("a", scene.server.url("/a") + "\n")
    try await worker().exits(75, saying: "NetworkManager and busctl are needed")

    try writeFile("\(scene.tools)/bus.conf", Self.busConfiguration(bus))
    let manager = try RunningCommand(
      [
        "/usr/bin/unshare", "-mn", "/bin/sh", "-euc", Self.script, "manager",
        scene.tools,
      ], environment: environment)
    defer { kill(-manager.processID, SIGKILL) }
    try await waitUntil("NetworkManager has its link") {
      guard !manager.isFinished else { throw TestSupportError("NetworkManager does not run here") }
      return fileStatus("\(scene.tools)/ready") != nil
    }
    let metered = try await worker()
    #expect(metered.status == .exited(75) && metered.errors == "", "\(metered)")
    #expect(scene.spool.places(of: "a") == ["new/a"] && scene.server.requests.isEmpty)

    try await tell("connection", "modify", "spool", "connection.metered", "no")
    try await tell("device", "reapply", "spool0")
    // It may have answered before it says so on its bus.
    var unmetered = try await worker()
    for _ in 0..<50 where unmetered.status == .exited(75) {
      try await Task.sleep(for: .milliseconds(200))
      unmetered = try await worker()
    }
    #expect(unmetered.status == .exited(0) && scene.isDone("a"), "\(unmetered)")
  }

  private static func busConfiguration(_ socket: String) -> String {
    """
    <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
      "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
    <busconfig>
      <listen>unix:path=\(socket)</listen>
      <auth>EXTERNAL</auth>
      <policy context="default">
        <allow user="*"/><allow own="*"/><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
      </policy>
    </busconfig>
    """
  }

  /// NetworkManager leaves alone the links of a machine whose udev it waits for: a /sys that cannot be written says
  /// that there is none.
  private static let script = """
    mount -t tmpfs none /run
    mount -t tmpfs none /var/lib/NetworkManager
    mount -t tmpfs none /etc/NetworkManager
    mount -t sysfs -o ro sysfs /sys
    ip link set lo up
    ip link add spool0 type veth peer name spool1
    ip link set spool1 up
    cd "$1"
    dbus-daemon --nofork --config-file=bus.conf &
    until [ -S bus ]; do sleep 0.02; done
    printf '[main]\\nplugins=keyfile\\nno-auto-default=*\\ndns=none\\nauth-polkit=false\\n' >manager.conf
    NetworkManager --no-daemon --config=manager.conf --pid-file=/run/manager.pid &
    until nmcli general >/dev/null 2>&1; do sleep 0.05; done
    nmcli connection add type ethernet ifname spool0 con-name spool connection.metered yes \\
      ipv4.method manual ipv4.addresses 192.0.2.2/24 ipv4.gateway 192.0.2.1 ipv6.method disabled
    nmcli --wait 200 connection up spool
    service=org.freedesktop.NetworkManager
    until busctl --system get-property $service /org/freedesktop/NetworkManager $service Metered | grep -qx 'u [13]'
    do sleep 0.05; done
    : >ready
    wait
    """
}
