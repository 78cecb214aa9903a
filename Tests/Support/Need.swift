import Glibc
import Synchronization

/// What a test needs and not every machine has, or lets its user do. A test without it is skipped, and says so:
/// `.enabled("…") { try await Need.users.isMet() }`. In CI, which has it all, nothing is skipped: there it fails.
package struct Need: Sendable {
  package let name: String
  /// A shell's line that ends with status 0 where the need is met, in an empty directory.
  package let trial: String

  /// To be several users, and to give files away.
  package static let users = Need(
    name: "root, to be several users",
    trial: """
      test "$(id -u)" = 0; : >x; chown 61001:61001 x
      setpriv --reuid=61001 --regid=61001 --clear-groups true; setpriv --reuid=65534 --regid=65534 --clear-groups true
      """)
  /// A mount namespace of its own, and to mount there.
  package static let mounts = Need(
    name: "root, and a mount namespace",
    trial: #"test "$(id -u)" = 0; unshare --mount sh -euc 'mount -t tmpfs none .; mount --bind . .'"#)
  /// ``BindMount``.
  package static let bindfs = Need(
    name: "root, a mount namespace, /dev/fuse, and bindfs, which scripts/setup installs",
    trial: #"test "$(id -u)" = 0; mkdir a b; : >a/x; unshare --mount sh -euc 'bindfs a b; test -e b/x; umount b'"#)
  /// A network namespace of its own, and to make links there.
  package static let networks = Need(
    name: "root, and a network namespace",
    trial: #"""
      test "$(id -u)" = 0
      unshare --net sh -euc 'ip link set lo up; ip link add spool0 type veth peer name spool1'
      """#)
  /// To make device files.
  package static let devices = Need(name: "leave to make device files", trial: "mknod null c 1 3; : >null")

  /// Temporary files on a disk, and not in memory.
  package static let disk = Need(name: "temporary files on a disk", trial: #"test "$(stat -f -c %T .)" != tmpfs"#)
  /// /dev/shm, if it is another file system than that of temporary files: ``TemporaryDirectory/otherFileSystem``.
  package static let otherFileSystem = Need(
    name: "/dev/shm, and temporary files on another file system",
    trial: #"test -w /dev/shm; test "$(stat -c %d .)" != "$(stat -c %d /dev/shm)""#)

  /// A program that `scripts/setup test` installs.
  package static func program(_ program: String) -> Need {
    Need(name: "\(program), which scripts/setup installs", trial: "command -v \(program)")
  }
  /// The programs that people sign with.
  package static let signing = Need(
    name: "gpg, gpgv, minisign, signify and ssh-keygen, which scripts/setup installs",
    trial: "for program in gpg gpgv minisign signify-openbsd ssh-keygen; do command -v $program; done")
  /// scp(1), which refuses to work for a user without an account.
  package static let scp = Need(name: "scp, and an account of the user", trial: ": >x; scp -q x y")
  /// The reader of OpenMetrics that Prometheus's client for Python has.
  package static let prometheusClient = Need(
    name: "python3-prometheus-client, which scripts/setup installs",
    trial: "/usr/bin/python3 -c 'import prometheus_client.openmetrics.parser'")
  /// Prometheus, its promtool, and node_exporter, as Debian names them.
  package static let prometheus = Need(
    name: "prometheus and prometheus-node-exporter, which scripts/setup installs",
    trial: "command -v prometheus; command -v promtool; command -v prometheus-node-exporter; command -v curl")
  /// axe-core, which finds what of a page is hard to read for some people. The line makes `axe.min.js`.
  package static let axe = Need(
    name: "pip, which scripts/setup installs, and axe-core-python from PyPI",
    trial: """
      timeout 60 python3 -m pip download --quiet --disable-pip-version-check --no-deps axe-core-python==0.1.0
      python3 -m zipfile -e axe_core_python-*.whl .; mv axe_core_python/axe.min.js .
      """)
  /// Chromium, which needs more than a kernel without namespaces gives it.
  package static let chromium = Need(
    name: "chromium, which scripts/setup installs",
    trial: "timeout 60 chromium --headless=new --no-sandbox --disable-gpu --user-data-dir=p --dump-dom about:blank")
  /// The validator of Debian's Python for JSON Schema.
  package static let jsonSchema = Need(
    name: "python3-jsonschema, which scripts/setup installs",
    trial: "/usr/bin/python3 -c 'import jsonschema; jsonschema.Draft202012Validator'")
  /// ``Tmux``.
  package static let tmux = program("tmux")
  /// script(1): a terminal.
  package static let terminal = program("script")
  /// ``TLSFront``.
  package static let tls = Need(
    name: "openssl and python3, which scripts/setup installs", trial: "command -v openssl; python3 -c 'import ssl'")
  /// squid(8), which changes its group where root starts it, and crashes if it may not.
  package static let squid = Need(
    name: "squid, which scripts/setup installs, and leave to change groups for root",
    trial: #"command -v squid; test "$(id -u)" != 0 || setpriv --regid=61001 --clear-groups true"#)
  /// ``SFTPServer``.
  package static let sftp = Need(
    name: "sshd and ssh-keygen, which scripts/setup installs, an account of the user, and mounts for root",
    trial: """
      command -v ssh-keygen; test -x /usr/sbin/sshd; test -x /usr/lib/openssh/sftp-server; id -un
      test "$(id -u)" != 0 || unshare --mount sh -euc 'mount -t tmpfs none /run'
      """)
  /// ``NginxRig``.
  package static let nginx = Need(
    name: "openssl and nginx, which scripts/setup installs", trial: "command -v openssl; command -v nginx")

  private static let answers = Mutex<[String: Bool]>([:])
  private static let isCI = getenv("CI").map { String(cString: $0) }.map { !["", "false"].contains($0) } ?? false

  /// Whether each of them is.
  package static func areMet(_ needs: Need...) async throws -> Bool {
    for need in needs {
      guard try await need.isMet() else { return false }
    }
    return true
  }

  /// - Throws: where this is CI, and the need is not met.
  package func isMet() async throws -> Bool {
    if let known = Self.answers.withLock({ $0[trial] }) { return known }
    let directory = try TemporaryDirectory()
    let result = try await run(["/bin/sh", "-euc", trial], directory: directory.path)
    let isMet = result.status == .exited(0)
    if !isMet, Self.isCI {
      throw TestSupportError("CI is set, and this is missing: \(name): \(result); unset CI to skip what needs it")
    }
    Self.answers.withLock { $0[trial] = isMet }
    return isMet
  }
}
