import Glibc

/// A tmpfs of a few megabytes in a mount namespace of its own, which the kernel removes with the process that holds it.
/// Needs ``Need/mounts``.
package final class SmallDisk: Sendable {
  private let directory: TemporaryDirectory
  private let holder: RunningCommand

  package init(megabytes: Int) async throws {
    directory = try TemporaryDirectory()
    holder = try RunningCommand(
      [
        "/usr/bin/unshare", "--mount", "/bin/sh", "-euc",
        "mount -t tmpfs -o size=\(megabytes)m,mode=700 none \"$0\"; mkdir \"$0/mounted\"; exec sleep infinity",
        directory.path,
      ], timeout: .seconds(3600))
    try await waitUntil("a small disk is mounted") {
      guard !self.holder.isFinished else { throw TestSupportError("no tmpfs could be mounted") }
      return fileStatus("\(self.path)/mounted") != nil
    }
  }

  deinit { holder.send(signal: SIGKILL) }

  /// Where it is seen from outside its namespace (proc(5), `/proc/PID/root`).
  package var path: String { "/proc/\(holder.processID)/root\(directory.path)" }

  /// Takes up room until ``empty()``.
  package func fill(megabytes: Int) throws {
    for number in 0..<megabytes { try writeFile("\(path)/filler-\(number)", [UInt8](repeating: 1, count: 1 << 20)) }
  }

  package func empty() {
    for name in names(in: path) where name.hasPrefix("filler-") { unlink("\(path)/\(name)") }
  }

  package var free: Int {
    var status = statvfs()
    return statvfs(path, &status) == 0 ? Int(status.f_bavail) * Int(status.f_frsize) : -1
  }
}
