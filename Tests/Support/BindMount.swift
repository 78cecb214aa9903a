import Glibc

/// A directory as bindfs(1) serves it by fuse(4), in a mount namespace of its own, which the kernel removes with the
/// process that serves it. What is written to the directory itself is another host's, as far as the mount can tell.
/// Needs ``Need/bindfs``.
package final class BindMount: Sendable {
  private let directory: TemporaryDirectory
  private let server: RunningCommand

  /// - Parameter source: a directory that is not empty.
  package init(_ source: String) async throws {
    directory = try TemporaryDirectory()
    server = try RunningCommand(
      ["/usr/bin/unshare", "--mount", "/bin/sh", "-euc", #"exec bindfs -f "$1" "$0""#, directory.path, source],
      timeout: .seconds(3600))
    try await waitUntil("bindfs serves") {
      guard !self.server.isFinished else { throw TestSupportError("bindfs could not mount \(source)") }
      return !names(in: self.path).isEmpty
    }
  }

  deinit { server.send(signal: SIGKILL) }

  /// The command to run another behind, which then is process 1 of a host of that name, and has the mount at
  /// ``directoryPath``.
  package func pod(_ name: String) -> [String] {
    [
      "/usr/bin/nsenter", "--target", "\(server.processID)", "--mount", "/usr/bin/unshare", "--uts", "--pid", "--fork",
      "--kill-child", "--mount", "--mount-proc", "/bin/sh", "-euc", #"hostname "$0"; exec "$@""#, name,
    ]
  }

  /// Where it is in its namespace.
  package var directoryPath: String { directory.path }

  /// Where it is seen from outside its namespace (proc(5), `/proc/PID/root`).
  package var path: String { "/proc/\(server.processID)/root\(directory.path)" }
}
