internal import Glibc
internal import SystemPackage

extension Spool {
  /// Bytes that this user can still write beside the data; nil if the file system does not tell.
  package func freeSpace() -> UInt64? {
    // If the file system cannot be queried, the free space is unknown, which stops no job.
    do throws(SpoolError) { return try directory.freeSpace() } catch { return nil }
  }

  /// A file whose presence says that a run has reported a full disk. Without it, cron would mail the report each
  /// minute. It is in `tmp/`, so it is removed after 36 hours, and the next run reports the disk again.
  static let shortageMark = FileName(".disk-short")

  /// Notes that the disk is full.
  /// - Returns: whether it was not noted before; also true if it cannot be noted.
  package func noteShortage() -> Bool {
    do throws(SpoolError) {
      _ = try system.create(root, Path(.tmp, Self.shortageMark), O_WRONLY | O_EXCL | O_NOFOLLOW)
      return true
    } catch {
      return error.errno != .fileExists
    }
  }

  /// Takes ``noteShortage()`` back when there is space again.
  package func forgetShortage() {
    // A mark that cannot be removed here is removed after 36 hours.
    try? system.unlink(root, Path(.tmp, Self.shortageMark))
  }
}

extension OutputRoot {
  /// Bytes that this user can still write there; nil if the file system does not tell.
  package func freeSpace() -> UInt64? {
    // As for the spool: unknown.
    do throws(SpoolError) { return try root.file.freeSpace() } catch { return nil }
  }
}
