internal import Glibc
internal import SystemPackage

/// Shows other processes of this host that a worker watches the spool, until it is let go: a shared lock on the
/// directory `new` (flock(2)). It is a hint, because no lock need be seen by another host, or exist at all: then a
/// command that could leave a job to that worker runs one of its own beside it.
package struct WatchSign: Sendable {
  private let file: SharedFile

  fileprivate init(_ file: SharedFile) { self.file = file }
}

extension Spool {
  /// - Returns: nil if somebody asks at this moment; try again later.
  /// - Throws: ``SpoolError``, also where the file system has no such locks.
  package func giveWatchSign() throws(SpoolError) -> WatchSign? {
    var file = try system.open(root, Path(.new), O_RDONLY | O_DIRECTORY)
    guard try file.lockShared() else { return nil }
    return WatchSign(file.shared())
  }

  /// Whether a worker of this host watches the spool and will see what is dropped.
  package func isWatched() -> Bool {
    do throws(SpoolError) {
      var file = try system.open(root, Path(.new), O_RDONLY | O_DIRECTORY)
      return try !file.lock()
    } catch {
      // Nobody can have given a sign here.
      return false
    }
  }
}
