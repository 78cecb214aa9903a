internal import CLinux
internal import Glibc
internal import SystemPackage

/// A file outside of a spool that is written as a whole.
package enum ReplacedFile {
  /// The content of the regular file at `path`, at most `limit` bytes; nil if there is no file.
  package static func read(_ path: String, limit: Int, system: System = System()) throws(SpoolError) -> [UInt8]? {
    let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY
    guard let file = try orNil(system.open(AT_FDCWD, Path(path), flags).shared(), on: .noSuchFileOrDirectory) else {
      return nil
    }
    return try file.status().isRegular ? try file.read(limit: limit) : nil
  }

  /// Writes `bytes` to a new file beside `path`, makes it durable, and renames it to `path`. Readers see the old file
  /// or the new one, never a part. The mode is 666 without the bits of the umask.
  ///
  /// A symbolic link is followed. What is no regular file, such as a pipe or /dev/null, is written to as it is: other
  /// programs need it. So is standard output by its link in /dev, which may be a log.
  /// - Throws: ``SpoolError``; then a regular file at `path` is what it was.
  package static func write(_ bytes: [UInt8], to path: String, system: System = System()) throws(SpoolError) {
    guard let target = try target(of: path, system) else { return try writeThrough(bytes, to: path, system) }
    try replace(target, by: bytes, system)
  }

  /// The path of the regular file to replace or to make; nil if there is something else.
  private static func target(of path: String, _ system: System) throws(SpoolError) -> Path? {
    // It does not follow links.
    let found = try orNil(system.status(AT_FDCWD, Path(path)), on: .noSuchFileOrDirectory)
    if found?.isRegular ?? true { return Path(path) }
    var status = stat()
    // A link that leads nowhere is replaced.
    guard stat(path, &status) == 0 else { return Path(path) }
    guard FileStatus(status).isRegular, !isOutput(path), let real = realpath(path, nil) else { return nil }
    defer { free(real) }
    return Path(Array(UnsafeRawBufferPointer(start: real, count: strlen(real))))
  }

  private static func isOutput(_ path: String) -> Bool {
    var (file, output) = (stat(), stat())
    guard stat(path, &file) == 0, fstat(STDOUT_FILENO, &output) == 0 else { return false }
    return (file.st_dev, file.st_ino) == (output.st_dev, output.st_ino)
  }

  private static func writeThrough(_ bytes: [UInt8], to path: String, _ system: System) throws(SpoolError) {
    // Opened again, standard output would be written to from its beginning.
    let file =
      isOutput(path)
      ? OwnedFile(dup(STDOUT_FILENO), Path(path), system).shared()
      : try system.open(AT_FDCWD, Path(path), O_WRONLY | O_NOCTTY).shared()
    try file.append(bytes)
    try file.close()
  }

  private static func replace(_ target: Path, by bytes: [UInt8], _ system: System) throws(SpoolError) {
    let tag = hexadecimal(Host.current.random() & 0xFFFF_FFFF, digits: 8)
    // With a leading dot, so that programs that look for files with an ending do not take it.
    let name = target.name?.bytes ?? []
    let draft = Path(target.bytes.dropLast(name.count) + [0x2E] + name.prefix(100) + Array(".\(tag)".utf8))
    do throws(SpoolError) {
      try system.write(bytes, toNew: AT_FDCWD, draft, mode: 0o666, isFlushed: true)
      try system.rename(AT_FDCWD, draft, target)
    } catch {
      try? system.unlink(AT_FDCWD, draft)
      throw error
    }
  }
}
