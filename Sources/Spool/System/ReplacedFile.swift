internal import Glibc
internal import SystemPackage

/// A file outside of a spool that is written as a whole.
package enum ReplacedFile {
  /// The content of the regular file at `path`, at most `limit` bytes; nil if there is no file.
  /// - Throws: ``SpoolError``.
  package static func read(_ path: String, limit: Int, system: System = System()) throws(SpoolError) -> [UInt8]? {
    do throws(SpoolError) {
      let file = try system.open(AT_FDCWD, Path(path), O_RDONLY | O_NONBLOCK | O_NOCTTY)
      return try file.status().isRegular ? try file.read(limit: limit) : nil
    } catch  where error.errno == .noSuchFileOrDirectory {
      return nil
    }
  }

  /// Writes `bytes` to a new file beside `path`, makes it durable, and renames it to `path`. Readers see the old file
  /// or the new one, never a part. The mode is 666 without the bits of the umask.
  /// - Parameter path: as open(2) takes it. If it is a symbolic link, the link is replaced.
  /// - Throws: ``SpoolError``; then `path` is what it was.
  package static func write(_ bytes: [UInt8], to path: String, system: System = System()) throws(SpoolError) {
    let (target, parts) = (Path(path), path.split(separator: "/", omittingEmptySubsequences: false))
    let tag = hexadecimal(UInt64.random(in: 0...UInt64(UInt32.max)), digits: 8)
    // With a leading dot, so that programs that look for files with an ending do not take it.
    let name = ".\(parts.last?.prefix(100) ?? "").\(tag)"
    let draft = Path((parts.dropLast().map(String.init) + [name]).joined(separator: "/"))
    let file = try system.create(AT_FDCWD, draft, O_WRONLY | O_EXCL | O_NOFOLLOW, mode: 0o666).shared()
    do throws(SpoolError) {
      try file.write(bytes, at: 0)
      try file.fsync()
      try file.close()
      try system.rename(AT_FDCWD, draft, target)
    } catch {
      try? system.unlink(AT_FDCWD, draft)
      throw error
    }
  }
}
