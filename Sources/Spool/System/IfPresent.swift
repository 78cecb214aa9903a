package import SystemPackage

/// A value; nil where it fails with one of these errors, because that is an answer.
package func orNil<Value>(
  _ value: @autoclosure () throws(SpoolError) -> Value?, on answers: Errno...
) throws(SpoolError) -> Value? {
  try orNil(value()) { answers.contains($0.errno) }
}

package func orNil<Value>(
  _ value: @autoclosure () throws(SpoolError) -> Value?, where isAnswer: (SpoolError) -> Bool
) throws(SpoolError) -> Value? {
  do throws(SpoolError) { return try value() } catch  where isAnswer(error) { return nil }
}

/// What is there or not, without an error that says so.
extension System {
  func statusIfPresent(_ at: Int32, _ path: Path) throws(SpoolError) -> FileStatus? {
    try orNil(status(at, path), on: .noSuchFileOrDirectory, .notDirectory)
  }

  func unlinkIfPresent(_ at: Int32, _ path: Path) throws(SpoolError) {
    do throws(SpoolError) { try unlink(at, path) } catch  where error.errno == .noSuchFileOrDirectory {}
  }

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
