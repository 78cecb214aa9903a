internal import CLinux
internal import Glibc
package import SystemPackage

/// System calls for files by name. A path is relative to the open directory `at`, or to the working directory
/// (AT_FDCWD).
extension System {
  @discardableResult
  private func call(_ kind: Call.Kind, _ path: Path, _ body: (UnsafePointer<CChar>) -> Int32) throws(SpoolError)
    -> Int32
  {
    Int32(try call(kind, path.display) { _ in path.withCString { Int(body($0)) } })
  }

  private func call(
    _ kind: Call.Kind, _ one: Path, _ other: Path, _ body: (UnsafePointer<CChar>, UnsafePointer<CChar>) -> Int32
  ) throws(SpoolError) {
    try call(kind, "\(one.display) \(other.display)") { _ in
      one.withCString { one in other.withCString { Int(body(one, $0)) } }
    }
  }

  func open(_ at: Int32, _ path: Path, _ flags: Int32) throws(SpoolError) -> OwnedFile {
    OwnedFile(try call(.open, path) { kernel.open(at, $0, flags, 0) }, path, self)
  }

  func create(_ at: Int32, _ path: Path, _ flags: Int32, mode: mode_t = 0o600) throws(SpoolError) -> OwnedFile {
    OwnedFile(try call(.create, path) { kernel.open(at, $0, flags | O_CREAT, mode) }, path, self)
  }

  /// A new file, open for reading and writing.
  /// - Throws: ``SpoolError``, EEXIST where something has the name.
  func createNew(_ at: Int32, _ path: Path, mode: mode_t = 0o600) throws(SpoolError) -> OwnedFile {
    try create(at, path, O_RDWR | O_EXCL | O_NOFOLLOW, mode: mode)
  }

  /// - Parameter modified: its time, in seconds since the epoch; nil for now.
  /// - Parameter isFlushed: whether it is durable then.
  func write(
    _ bytes: [UInt8], toNew at: Int32, _ path: Path, mode: mode_t, modified: Int64? = nil, isFlushed: Bool
  ) throws(SpoolError) {
    let file = try createNew(at, path, mode: mode).shared()
    try file.write(bytes, at: 0)
    if let modified { try file.setTimes(to: modified) }
    if isFlushed { try file.fsync() }
    try file.close()
  }

  /// openat(2) with O_TMPFILE: a file without a name in `directory`.
  func openUnnamed(_ at: Int32, _ directory: Path) throws(SpoolError) -> OwnedFile {
    OwnedFile(try call(.create, directory) { kernel.openUnnamed(at, $0) }, directory, self)
  }

  /// openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS. Linux before 5.6 does not have it: there one name after
  /// the other is opened with O_NOFOLLOW, which cannot leave an open directory either.
  /// - Parameter path: without `..`.
  func openBeneath(_ at: Int32, _ path: Path, _ flags: Int32) throws(SpoolError) -> OwnedFile {
    do throws(SpoolError) {
      return OwnedFile(try call(.open, path) { kernel.openBeneath(at, $0, flags) }, path, self)
    } catch  where error.errno == .noFunction {
      let names = path.bytes.split(separator: UInt8(ascii: "/")).map { Path(Array($0)) }
      var parent: SharedFile?
      for name in names.dropLast() {
        parent = try open(parent?.number ?? at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).shared()
      }
      return try open(parent?.number ?? at, names.last ?? path, flags | O_NOFOLLOW)
    }
  }

  func makeDirectory(_ at: Int32, _ path: Path, mode: mode_t = 0o700) throws(SpoolError) {
    try call(.mkdir, path) { kernel.makeDirectory(at, $0, mode) }
  }

  func rename(_ at: Int32, _ from: Path, _ to: Path) throws(SpoolError) {
    try call(.rename, from, to) { kernel.rename(at, $0, $1, .replacing) }
  }

  func renameNoReplace(_ at: Int32, _ from: Path, _ to: Path) throws(SpoolError) {
    try call(.rename, from, to) { kernel.rename(at, $0, $1, .withoutReplacing) }
  }

  /// renameat2(2) with RENAME_EXCHANGE: each gets the other's name; ENOENT where one of them does not exist.
  func exchange(_ at: Int32, _ one: Path, _ other: Path) throws(SpoolError) {
    try call(.rename, one, other) { kernel.rename(at, $0, $1, .exchanging) }
  }

  /// linkat(2): gives the file at `from` a second name; never replaces.
  func link(_ at: Int32, _ from: Path, _ toDirectory: Int32, _ to: Path, follow: Bool = false) throws(SpoolError) {
    do throws(SpoolError) {
      try call(.link, from, to) { kernel.link(at, $0, toDirectory, $1, follow: follow) }
    } catch  where error.errno == .notPermitted {
      // SFTP has no error for a name that exists, and sshfs(1) says EPERM, where another host has just made it.
      guard (try? status(toDirectory, to)) != nil else { throw error }
      throw SpoolError(call: error.call, path: error.path, errno: .fileExists)
    }
  }

  /// symlinkat(2): makes a link at `path`; never replaces.
  func symbolicLink(_ target: Path, _ at: Int32, _ path: Path) throws(SpoolError) {
    try call(.link, target, path) { kernel.symbolicLink($0, at, $1) }
  }

  /// readlinkat(2): where a link leads; EINVAL if it is no link.
  func readLink(_ at: Int32, _ path: Path) throws(SpoolError) -> [UInt8] {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = try call(.read, path) { path in
      buffer.withUnsafeMutableBufferPointer { Int32(kernel.readLink(at, path, $0)) }
    }
    return buffer.prefix(Int(count)).map { UInt8(bitPattern: $0) }
  }

  func unlink(_ at: Int32, _ path: Path) throws(SpoolError) { try call(.unlink, path) { kernel.unlink(at, $0) } }

  /// unlinkat(2) with AT_REMOVEDIR: an empty directory.
  func removeDirectory(_ at: Int32, _ path: Path) throws(SpoolError) {
    try call(.unlink, path) { kernel.removeDirectory(at, $0) }
  }

  /// fstatat(2) with AT_SYMLINK_NOFOLLOW: what a network file system remembers may be some seconds old.
  func status(_ at: Int32, _ path: Path) throws(SpoolError) -> FileStatus { try status(at, path, absent: [])! }

  /// The same without what a network file system remembers; see `spoolrun_status_of_server`.
  func stampOfServer(_ at: Int32, _ path: Path) throws(SpoolError) -> FileStatus.Stamp {
    var status = stat()
    try call(.stat, path) { kernel.status(at, $0, &status, ofServer: true) }
    return FileStatus(status).stamp
  }

  /// faccessat(2) as the effective user: EACCES, EROFS, or EPERM for an immutable directory, where no name in it can be
  /// made or moved.
  func mayChange(_ at: Int32, _ directory: Path) throws(SpoolError) {
    try call(.stat, directory) { kernel.mayChange(at, $0) }
  }
}

/// A value; nil where it fails with one of these errors, because that is an answer.
@discardableResult package func orNil<Value>(
  _ value: @autoclosure () throws(SpoolError) -> Value?, on answers: Errno...
) throws(SpoolError) -> Value? { try orNil(value()) { answers.contains($0.errno) } }

@discardableResult package func orNil<Value>(
  _ value: @autoclosure () throws(SpoolError) -> Value?, where isAnswer: (SpoolError) -> Bool
) throws(SpoolError) -> Value? {
  do throws(SpoolError) { return try value() } catch  where isAnswer(error) { return nil }
}

/// What is there or not, without an error that says so.
extension System {
  func statusIfPresent(_ at: Int32, _ path: Path) throws(SpoolError) -> FileStatus? {
    try status(at, path, absent: [.noSuchFileOrDirectory, .notDirectory, .fileNameTooLong])
  }

  /// - Parameter absent: the errors that say that there is no such file. To word an error takes longer than the call.
  func status(_ at: Int32, _ path: Path, absent: [Errno]) throws(SpoolError) -> FileStatus? {
    var status = stat()
    var isThere = true
    do throws(SpoolError) {
      try call(.stat, path) { path in
        let result = kernel.status(at, path, &status, ofServer: false)
        isThere = result >= 0 || !absent.contains(Errno(rawValue: errno))
        return isThere ? result : 0
      }
    } catch  where absent.contains(error.errno) {
      return nil
    }
    return isThere ? FileStatus(status) : nil
  }

  func unlinkIfPresent(_ at: Int32, _ path: Path) throws(SpoolError) {
    try orNil(unlink(at, path), on: .noSuchFileOrDirectory)
  }

  func unlink(_ at: Int32, _ path: Path, of file: FileStatus) throws(SpoolError) {
    if try statusIfPresent(at, path)?.isSameFile(as: file) == true { try unlinkIfPresent(at, path) }
  }

  /// - Returns: whether it was missing.
  @discardableResult
  func makeDirectoryIfMissing(_ at: Int32, _ path: Path, mode: mode_t = 0o700) throws(SpoolError) -> Bool {
    try orNil(makeDirectory(at, path, mode: mode), on: .fileExists) != nil
  }
}
