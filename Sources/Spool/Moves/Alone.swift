internal import Glibc
internal import SystemPackage

extension Spool {
  /// Keeps commands that look whether the spool has a job, and drop it if not, from dropping it twice: `body` runs
  /// while this process has the lock (flock(2)) of the directory `tmp`. There is no such lock for a user who may only
  /// drop, nor between hosts.
  /// - Parameters:
  ///   - limit: milliseconds to wait for other commands; nil for as long as it takes. After that, `body` runs without
  ///     the lock.
  ///   - wait: called a few times a second meanwhile.
  /// - Throws: ``SpoolError``, and what `body` throws.
  package func alone<Result>(
    within limit: Int? = 5000, wait: () -> Void = {}, _ body: () throws -> Result
  ) throws -> Result {
    let lock = try lockOfDrops(within: limit, wait)
    defer { withExtendedLifetime(lock) {} }
    return try body()
  }

  /// - Returns: the directory with its lock; nil if this user may not open it.
  private func lockOfDrops(within limit: Int?, _ wait: () -> Void) throws(SpoolError) -> SharedFile? {
    let interval = 20
    var waited = 0
    do throws(SpoolError) {
      var file = try system.open(root, Path(.tmp), O_RDONLY | O_DIRECTORY)
      while try !file.lock(), limit.map({ waited < $0 }) ?? true {
        wait()
        Host.current.wait(milliseconds: interval)
        waited += interval
      }
      return file.shared()
    } catch  where error.call == .open && error.errno == .permissionDenied {
      return nil
    }
  }
}
