internal import SystemPackage

/// What is there or not, without an error that says so.
extension System {
  func statusIfPresent(_ at: Int32, _ path: Path) throws(SpoolError) -> FileStatus? {
    do throws(SpoolError) {
      return try status(at, path)
    } catch  where error.errno == .noSuchFileOrDirectory || error.errno == .notDirectory {
      return nil
    }
  }

  func unlinkIfPresent(_ at: Int32, _ path: Path) throws(SpoolError) {
    do throws(SpoolError) { try unlink(at, path) } catch  where error.errno == .noSuchFileOrDirectory {}
  }

  /// Removes the name if it is still one of the file with this status.
  func unlink(_ at: Int32, _ path: Path, of file: FileStatus) throws(SpoolError) {
    if try statusIfPresent(at, path)?.isSameFile(as: file) == true { try unlinkIfPresent(at, path) }
  }

  /// - Returns: whether it was missing.
  @discardableResult
  func makeDirectoryIfMissing(_ at: Int32, _ path: Path) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      try makeDirectory(at, path)
      return true
    } catch  where error.errno == .fileExists {
      return false
    }
  }
}
