internal import Glibc
internal import SystemPackage

/// The directory that `output:` is relative to. No output leads out of it or through a symbolic link.
package final class OutputRoot {
  /// The path given by `--directory`, made absolute for receipts; nil for the spool's own `files`.
  package let location: String?

  /// Where payloads are made durable; nil if it cannot be made durable as a whole.
  package let fileSystem: FileSystem?

  let spool: Spool
  let root: OpenDirectory
  /// The directory that ``root``'s path is relative to.
  var base: Int32 { location == nil ? spool.root : AT_FDCWD }
  private let durable = DurableDirectories()

  /// - Parameter location: an absolute path, or nil for `files` in the spool.
  /// - Throws: ``SpoolError``, ENOENT where there is no such directory.
  package init(_ location: String?, spool: Spool) throws(SpoolError) {
    self.location = location
    self.spool = spool
    let path = location.map { Path($0) } ?? Path(.files)
    // The root itself may be a link: it is the administrator's choice, not a job's.
    let base = location == nil ? spool.root : AT_FDCWD
    let reached = try spool.system.reach(path, from: base)
    root = try OpenDirectory(reached.file.shared())
    fileSystem = FileSystem(root.file, root.identity, FileSystemKind(type: try root.file.fileSystemType()))
  }

  /// Whether `output` leads to the directory of `place`.
  func leads(to place: OutputPlace, _ output: OutputPath) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      return try open(output, creating: false).parent.isSame(as: place.parent)
    } catch  where error.errno == .noSuchFileOrDirectory {
      return false
    }
  }

  /// The status of the file at `output`; nil when there is none.
  /// - Throws: ``SpoolError``, ELOOP where a directory of the path is a symbolic link.
  package func status(_ output: OutputPath) throws(SpoolError) -> FileStatus? {
    do throws(SpoolError) {
      let place = try open(output, creating: false)
      return try spool.system.status(place.parent.number, place.name)
    } catch  where error.errno == .noSuchFileOrDirectory {
      return nil
    }
  }

  /// Makes sure that a file can be made at `output`, or its first directory that is missing.
  /// - Throws: ``SpoolError``: EROFS, EACCES, or EPERM for an immutable directory.
  package func checkWritable(_ output: OutputPath) throws(SpoolError) {
    var directory = root
    do throws(SpoolError) {
      for depth in output.parents.indices { directory = try enter(output, depth, in: directory) }
    } catch  where error.errno == .noSuchFileOrDirectory {
    }
    try spool.system.mayChange(directory.number, Path("."))
  }

  /// The path of the directory of `output`, for a person.
  package func path(of output: OutputPath) -> String {
    escaped(([location ?? "\(spool.location)/files"] + output.parents).joined(separator: "/"))
  }

  /// The place of `output`. Missing directories are made.
  /// - Parameter mode: of the payload; nil if only this user may enter the directories that are made.
  /// - Throws: ``SpoolError``, ELOOP where a directory of the path is a symbolic link.
  package func place(_ output: OutputPath, _ mode: PayloadMode? = nil) throws(SpoolError) -> OutputPlace {
    try open(output, creating: true, mode)
  }

  private func open(_ output: OutputPath, creating: Bool, _ mode: PayloadMode? = nil) throws(SpoolError)
    -> OutputPlace
  {
    var chain = [root]
    for (depth, name) in output.parents.enumerated() {
      let parent = chain[chain.count - 1]
      do throws(SpoolError) {
        chain.append(try enter(output, depth, in: parent))
      } catch  where error.errno == .noSuchFileOrDirectory && creating {
        chain.append(try make(Path(name), in: parent, mode))
      }
    }
    return OutputPlace(chain: chain, name: Path(output.name), durable: durable, spool: spool)
  }

  private func enter(_ output: OutputPath, _ depth: Int, in parent: OpenDirectory) throws(SpoolError) -> OpenDirectory {
    do throws(SpoolError) { return try enter(Path(output.parents[depth]), in: parent) } catch {
      // A person looks for it below the output root.
      let place = output.parents[...depth].joined(separator: "/")
      throw SpoolError(call: error.call, path: escaped(place), errno: error.errno)
    }
  }

  private func enter(_ path: Path, in parent: OpenDirectory) throws(SpoolError) -> OpenDirectory {
    let flags = O_RDONLY | O_DIRECTORY
    let file: SharedFile
    do throws(SpoolError) {
      file = try spool.system.openBeneath(parent.number, path, flags).shared()
    } catch  where error.errno == .noFunction {
      // Linux before 5.6: one name with O_NOFOLLOW below an open directory cannot leave it either.
      file = try spool.system.open(parent.number, path, flags | O_NOFOLLOW).shared()
    }
    return try OpenDirectory(file)
  }

  private func make(_ path: Path, in parent: OpenDirectory, _ mode: PayloadMode?) throws(SpoolError) -> OpenDirectory {
    var mode = mode
    do throws(SpoolError) {
      try spool.system.makeDirectory(parent.number, path)
    } catch  where error.errno == .fileExists {
      mode = nil
    }
    let made = try enter(path, in: parent)
    // Not by mkdir(2): the umask would take the permissions away.
    if let mode { try made.file.setPermissions(mode.ofDirectories) }
    // A directory that was removed may have had this inode's number.
    durable.forget(made.identity)
    return made
  }

  /// Removes what interrupted commits of the data with these inodes left beside `output`: a second name of the data, or
  /// a copy of it.
  /// - Throws: ``SpoolError``.
  package func removeTemporaries(beside output: OutputPath, of inodes: [UInt64]) throws(SpoolError) {
    do throws(SpoolError) {
      let place = try open(output, creating: false)
      for inode in inodes { try place.removeTemporary(of: inode) }
    } catch  where error.errno == .noSuchFileOrDirectory {
    }
  }
}
