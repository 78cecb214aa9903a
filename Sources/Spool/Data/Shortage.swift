internal import Glibc
internal import SystemPackage

extension Spool {
  /// A file whose presence says that a run has told of a full disk: else cron would mail that each minute. Being in `tmp/` it is swept after 36 hours, and then
  /// it is told of again.
  static let shortageMark = FileName(".disk-short")

  /// - Returns: whether nobody has noted it before; true too where it cannot be noted.
  package func noteShortage() -> Bool {
    let path = Path(.tmp, Self.shortageMark)
    do throws(SpoolError) {
      _ = Glibc.close(try system.create(root, path, O_WRONLY | O_EXCL | O_NOFOLLOW))
      return true
    } catch {
      return error.errno != .fileExists
    }
  }

  /// For when there is room again.
  package func forgetShortage() {
    // One that stays is swept.
    try? system.unlink(root, Path(.tmp, Self.shortageMark))
  }
}
