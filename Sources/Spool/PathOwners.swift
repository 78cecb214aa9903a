internal import CLinux
internal import Glibc
package import SystemPackage

struct ReachedDirectory: ~Copyable {
  var file: OwnedFile
  /// Whether nobody but root and this user can have the path lead elsewhere.
  var isOwn = true
}

/// Who decides where a path leads.
extension System {
  /// As in path_resolution(7).
  private static let mostLinks = 40
  /// PROC_SUPER_MAGIC (statfs(2)).
  private static let procfs: UInt32 = 0x9FA0

  /// Opens a directory, and follows no link that another user could have put on the way: it could lead to any directory
  /// of this user's. In a directory of theirs, other users can only put directories of theirs.
  /// - Parameter start: an open directory that `path` is relative to.
  /// - Throws: ``SpoolError``, ELOOP for such a link.
  func reach(_ path: Path, from start: Int32 = AT_FDCWD) throws(SpoolError) -> ReachedDirectory {
    do throws(SpoolError) { return try walk(path, from: start) } catch {
      throw SpoolError(call: .open, path: path.display, errno: error.errno, reason: error.reason)
    }
  }

  private func walk(_ path: Path, from start: Int32) throws(SpoolError) -> ReachedDirectory {
    func first(_ path: [UInt8]) -> Path { Path(path.first == 0x2F ? "/" : ".") }
    func parts(_ path: [UInt8]) -> [[UInt8]] { path.split(separator: 0x2F).reversed().map { Array($0) } }
    let passing = spoolrun_path_only | O_DIRECTORY | O_NOFOLLOW
    var reached = ReachedDirectory(file: try open(start, first(path.bytes), passing))
    var (left, links) = (parts(path.bytes), 0)
    while let name = left.popLast() {
      let (parent, entry) = (try reached.file.status(), try status(reached.file.number, Path(name)))
      let isKept = parent.keeps(entry, for: geteuid())
      reached.isOwn = reached.isOwn && isKept
      if !entry.isLink {
        reached.file = try open(reached.file.number, Path(name), passing)
        continue
      }
      links += 1
      guard isKept, links <= Self.mostLinks else {
        throw SpoolError(
          call: .open, path: path.display, errno: .tooManySymbolicLinkLevels,
          reason: "\(escaped(name)) is a symbolic link that another user can replace, so it is not followed")
      }
      // Its text is only for people: the kernel knows where it leads (proc(5), /proc/PID/root).
      if try reached.file.fileSystemType() == Self.procfs {
        reached.file = try open(reached.file.number, Path(name), spoolrun_path_only | O_DIRECTORY)
        continue
      }
      let target = try readLink(reached.file.number, Path(name))
      if target.first == 0x2F { reached.file = try open(reached.file.number, first(target), passing) }
      left += parts(target)
    }
    reached.file = try open(reached.file.number, Path("."), O_RDONLY | O_DIRECTORY)
    reached.file.path = path
    return reached
  }

  fileprivate func isOwn(_ path: Path) -> Bool {
    do throws(SpoolError) { return try reach(path).isOwn } catch { return false }
  }
}

extension FileStatus {
  /// Whether in this directory nobody but root and `user` can put something else in the place of `entry`. A user who is
  /// not root trusts the groups that may write there. In a sticky directory, such as /tmp, only its owner and the
  /// entry's can move the entry.
  fileprivate func keeps(_ entry: FileStatus, for user: UInt32) -> Bool {
    func isTrusted(_ file: FileStatus) -> Bool { file.owner == user || file.owner == 0 }
    let isClosed = permissions & (user == 0 ? 0o022 : 0o002) == 0
    return isTrusted(self) && (isClosed || permissions & 0o1000 != 0 && isTrusted(entry))
  }
}

extension Spool {
  private static func open(_ directory: Int32) -> String { "/proc/self/fd/\(directory)" }

  /// The path of a file in the spool for a child process: by the spool's name, unless another user can have that lead
  /// elsewhere at any moment; then by the directory that is open.
  package func path(forChild relative: String) -> String {
    path(forChild: relative, in: Settings(location: location, directory: directory))
  }

  func path(forChild relative: String, in place: Settings) -> String {
    "\(system.isOwn(Path(place.location)) ? place.location : Self.open(place.directory.number))/\(relative)"
  }

  /// The descriptor that a child process needs for such a path; -1 for none.
  package func descriptor(for path: String) -> Int32 {
    [root, settings?.directory.number ?? root].first { path.begins(with: "\(Self.open($0))/") } ?? -1
  }

  /// Why this process may not work here, or move jobs; nil if it may. Only the user that the open directory belongs to
  /// may: whoever owns it can replace any file in it, and lead what is written through it elsewhere. A directory that
  /// root has made for a user, as for a volume of a container, is that user's.
  package func stranger() throws(SpoolError) -> String? {
    if identity.owner == user || user != 0 && identity.owner == 0 && journalUser == user { return nil }
    if user != 0, !kind.isLocal, try ownerOfNewFile() == identity.owner { return nil }
    return "the spool belongs to user \(identity.owner), and this is user \(user): run spoolrun as that user"
  }

  /// A network file system may show another user as the owner of all that this one makes.
  private func ownerOfNewFile() throws(SpoolError) -> UInt32 {
    let file = try system.createNew(root, temporary(FileName(".owner")))
    defer { try? system.unlink(root, file.path) }
    return try file.status().owner
  }

  /// Whether it is the directory that was looked at by its path before it was opened.
  package func isDirectory(device: UInt64, inode: UInt64, owner: UInt32) -> Bool {
    identity.device == device && identity.inode == inode && identity.owner == owner
  }
}

/// The absolute path of a directory, without links (realpath(3)). Receipts name it, and have only UTF-8: where it has
/// other bytes, a link may have a name in UTF-8, and so the path stays as the person wrote it.
/// - Throws: why there is none; EILSEQ where no path is UTF-8.
package func realPath(_ path: String) throws(Errno) -> String {
  guard let real = realpath(path, nil) else { throw Errno(rawValue: errno) }
  defer { free(real) }
  if let text = String(validatingCString: real) { return text }
  if path.begins(with: "/") { return path }
  guard let current = getcwd(nil, 0) else { throw Errno(rawValue: errno) }
  defer { free(current) }
  guard !path.isEmpty, let directory = String(validatingCString: current) else { throw Errno(rawValue: EILSEQ) }
  return "\(directory)/\(path)"
}
