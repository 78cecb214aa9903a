internal import Glibc
internal import SystemPackage

extension Spool {
  /// Bytes that this user can still write beside the data; nil if the file system does not tell.
  package func freeSpace() -> UInt64? {
    // If the file system cannot be queried, the free space is unknown, which stops no job.
    do throws(SpoolError) { return try directory.freeSpace() } catch { return nil }
  }
}

/// A file whose presence says that a run has reported a full disk. Without it, cron would mail the report each
/// minute. It is in `tmp/`, so it is removed after 36 hours, and the next run reports the disk again.
package struct ShortageMark {
  static let name = FileName(".disk-short")
  private let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  /// Notes that the disk is full.
  /// - Returns: whether it was not noted before; also true if it cannot be noted.
  package func leave() -> Bool {
    do throws(SpoolError) {
      _ = try spool.system.create(spool.root, Path(.tmp, Self.name), O_WRONLY | O_EXCL | O_NOFOLLOW)
      return true
    } catch {
      return error.errno != .fileExists
    }
  }

  /// Takes ``leave()`` back when there is space again.
  package func remove() {
    // A mark that cannot be removed here is removed after 36 hours.
    try? spool.system.unlink(spool.root, Path(.tmp, Self.name))
  }
}

extension OutputRoot {
  /// Bytes that this user can still write there; nil if the file system does not tell.
  package func freeSpace() -> UInt64? {
    // As for the spool: unknown.
    do throws(SpoolError) { return try root.file.freeSpace() } catch { return nil }
  }
}
