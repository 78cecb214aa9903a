internal import CLinux
internal import Glibc
internal import SystemPackage

/// An open spool directory. All paths and renames of the protocol are in this module; every path is resolved from this one descriptor, so
/// that directories removed and made again are found again.
package final class Spool: Sendable {
  /// As the user named it.
  package let location: String
  package let owner: WorkerID
  /// The kernel's id of this boot (random(4)): an unclean reboot shows as another.
  package let boot: String
  package let system: System
  let root: Int32
  private let device: UInt64

  /// Opens the spool at `location`.
  /// - Throws: ``SpoolError``: ENOENT where there is none, ENOTDIR where it is something else or lacks one of its directories.
  package init(_ location: String, owner: WorkerID, boot: String, system: System = System()) throws(SpoolError) {
    self.location = location
    self.owner = owner
    self.boot = boot
    self.system = system
    root = try system.open(AT_FDCWD, Path(location), O_RDONLY | O_DIRECTORY)
    device = try system.status(root, path: Path(location)).device
    for directory in Directory.allCases where directory != .files {
      do throws(SpoolError) {
        guard try system.status(root, Path(directory)).isDirectory else {
          throw SpoolError(call: .open, path: "\(escaped(location))/\(directory.rawValue)", errno: .notDirectory)
        }
      } catch  where error.errno == .noSuchFileOrDirectory {
        throw SpoolError(call: .open, path: "\(escaped(location))/\(directory.rawValue)", errno: .noSuchFileOrDirectory)
      }
    }
  }

  deinit { _ = Glibc.close(root) }

  /// Whether the spool's path still leads to the directory that is open.
  package func isInPlace() throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      // Through a link as well.
      return try system.status(AT_FDCWD, Path("\(location)/.")).isSameFile(
        as: system.status(root, path: Path(location)))
    } catch  where [.noSuchFileOrDirectory, .notDirectory, .permissionDenied].contains(error.errno) {
      return false
    }
  }

  /// The spool that the path leads to by now; nil where none is, or not all of its directories are yet.
  package func reopened() throws(SpoolError) -> Spool? {
    do throws(SpoolError) {
      return try Spool(location, owner: owner, boot: boot, system: system)
    } catch  where [.noSuchFileOrDirectory, .notDirectory, .permissionDenied].contains(error.errno) {
      return nil
    }
  }

  /// Makes the directories of a spool; those that are there stay as they are.
  package static func create(_ location: String, system: System = System()) throws(SpoolError) {
    func make(_ at: Int32, _ path: Path) throws(SpoolError) {
      do throws(SpoolError) {
        try system.makeDirectory(at, path)
      } catch  where error.errno == .fileExists {
      }
    }
    try make(AT_FDCWD, Path(location))
    let root = try system.open(AT_FDCWD, Path(location), O_RDONLY | O_DIRECTORY)
    defer { _ = Glibc.close(root) }
    for directory in Directory.allCases { try make(root, Path(directory)) }
    try system.fsync(root, Path(location))
  }

  /// This process as a worker of this host.
  package static func currentWorker() -> (owner: WorkerID, boot: String) {
    var host = [CChar](repeating: 0, count: 256)
    let named = gethostname(&host, host.count - 1) == 0
    let text =
      named ? String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : "localhost"
    return (
      WorkerID(host: text, process: getpid(), tag: UInt32.random(in: 0...UInt32.max)), bootID()
    )
  }

  private static func bootID() -> String {
    // Where there is no /proc, "unknown" counts as another boot each time.
    let descriptor = Glibc.open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "unknown" }
    defer { _ = Glibc.close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 36)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    return count == 36 ? String(decoding: bytes, as: UTF8.self) : "unknown"
  }

  /// The names in `directory` that are not ignored: no leading dot. One reading proves nothing about what moves meanwhile (readdir(3)).
  package func list(_ directory: Directory) throws(SpoolError) -> [FileName] {
    let stream = try stream(directory)
    var names: [FileName] = []
    while let name = try stream.next() {
      if !name.isIgnored { names.append(name) }
    }
    return names
  }

  /// nil when there is nothing of that name.
  package func status(_ directory: Directory, _ name: FileName) throws(SpoolError) -> FileStatus? {
    do throws(SpoolError) {
      return try system.status(root, Path(directory, name))
    } catch  where error.errno == .noSuchFileOrDirectory {
      return nil
    }
  }

  /// Makes the names in `directory` durable (fsync(2): a file's own fsync says nothing of its name).
  package func flush(_ directory: Directory) -> Flush {
    Flush(.directory(directory), device: device) { [system, root] () throws(SpoolError) in
      let path = Path(directory)
      let descriptor = try system.open(root, path, O_RDONLY | O_DIRECTORY)
      defer { _ = Glibc.close(descriptor) }
      try system.fsync(descriptor, path)
    }
  }

  /// - Throws: ``SpoolError`` where its status cannot be read.
  package func fileSystem() throws(SpoolError) -> FileSystem {
    try FileSystem(root, Path(location), system, keeping: self)
  }

  /// A name in `tmp/` of this call's own. Others may write there (spool.5, SEVERAL USERS), and see this worker's tag in the names of its claims: so it
  /// is no name that they could take first.
  func temporary(_ name: FileName) -> Path {
    Path(.tmp, FileName(name.bytes + [0x3A] + Array(owner.retagged.text.utf8)))
  }

  /// The time by the clock that stamps this file system's files, which may be another machine's.
  package func fileSystemTime() throws(SpoolError) -> Timestamp {
    let path = temporary(FileName(".clock"))
    let descriptor = try system.create(root, path, O_WRONLY | O_EXCL)
    defer { _ = Glibc.close(descriptor) }
    let time = try system.status(descriptor, path: path).modified
    try system.unlink(root, path)
    return Timestamp(seconds: time)
  }

  /// A non-blocking inotify(7) instance.
  package func openWatch() throws(SpoolError) -> Int32 {
    let descriptor = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
    guard descriptor >= 0 else {
      throw SpoolError(call: .open, path: "inotify", errno: Errno(rawValue: Glibc.errno))
    }
    return descriptor
  }

  /// Watches `directory`, or the spool's own for nil.
  /// - Returns: the watch; nil when the directory is not there now.
  @discardableResult
  package func addWatch(_ descriptor: Int32, _ directory: Directory?, _ mask: UInt32) throws(SpoolError) -> Int32? {
    // inotify_add_watch takes no directory descriptor; by way of /proc it follows the one that is open. Without /proc, as in some chroots, by name.
    let base = access("/proc/self/fd", F_OK) == 0 ? "/proc/self/fd/\(root)" : location
    let path = Path("\(base)/\(directory?.rawValue ?? ".")")
    let watch = path.withCString { inotify_add_watch(descriptor, $0, mask) }
    if watch >= 0 { return watch }
    let errno = Errno(rawValue: Glibc.errno)
    if errno == .noSuchFileOrDirectory || errno == .notDirectory { return nil }
    throw SpoolError(call: .open, path: "inotify watch on \(path.display)", errno: errno)
  }

  /// Bytes that this user can still write beside the data; nil where the file system does not say.
  package func freeSpace() -> UInt64? {
    var status = statvfs()
    guard fstatvfs(root, &status) == 0, status.f_blocks > 0 else { return nil }
    let (bytes, isTooMany) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
    return isTooMany ? .max : bytes
  }

  /// The whole of a small regular file, at most `limit` bytes; nil when there is none.
  package func contents(_ path: Path, limit: Int) throws(SpoolError) -> [UInt8]? {
    let descriptor: Int32
    do throws(SpoolError) {
      // Before the open, which is an action of its own on some devices.
      guard try system.status(root, path).isRegular else { return nil }
      descriptor = try system.open(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    } catch  where error.errno == .noSuchFileOrDirectory {
      return nil
    }
    defer { _ = Glibc.close(descriptor) }
    return try read(descriptor, path, limit: limit)
  }

  func read(_ descriptor: Int32, _ path: Path, limit: Int) throws(SpoolError) -> [UInt8] {
    let size = Int(clamping: try system.status(descriptor, path: path).size)
    var bytes = [UInt8](repeating: 0, count: min(size, limit))
    var filled = 0
    while filled < bytes.count {
      // A throwing closure cannot carry the typed error through withUnsafe…, hence the Result.
      let result: Result<Int, SpoolError> = bytes.withUnsafeMutableBytes { buffer in
        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
        return Result { () throws(SpoolError) in
          try system.read(descriptor, path, into: rest, at: Int64(filled))
        }
      }
      let count = try result.get()
      if count == 0 { break }
      filled += count
    }
    bytes.removeLast(bytes.count - filled)
    return bytes
  }

  private func exists(_ path: Path) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      _ = try system.status(root, path)
      return true
    } catch  where error.errno == .noSuchFileOrDirectory {
      return false
    }
  }

  /// The keys that every job inherits.
  /// - Throws: ``Defect`` naming the line; ``SpoolError``.
  package func defaults() throws -> JobRequest {
    let path = Path("defaults")
    let bytes = try contents(path, limit: JobText.maximumRequest + 1)
    guard let bytes else {
      let isThere = try exists(path)
      guard isThere else { return JobRequest() }
      throw Defect(line: nil, reason: "is no regular file")
    }
    let text = bytes.withUnsafeBytes { JobText($0, defaults: true) }
    if let defect = text.defect { throw defect }
    if text.hasTornTail { throw Defect(line: nil, reason: "its last line does not end in a newline") }
    return text.request
  }
}
