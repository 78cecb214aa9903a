internal import CLinux
internal import Glibc
internal import SystemPackage

/// The directory that `output:` is relative to. Nothing the job says leads out of it or through a symbolic link.
package final class OutputRoot {
  /// As given by `--directory`, made absolute for receipts; nil for the spool's own `files`.
  package let location: String?

  /// Where payloads are made durable.
  package let fileSystem: FileSystem

  let spool: Spool
  let root: OutputDirectory
  /// What ``root``'s path is relative to.
  var base: Int32 { location == nil ? spool.root : AT_FDCWD }
  /// Directories whose own entry is known to be durable: made or synced by this process.
  private var durable: Set<Identity> = []

  private struct Identity: Hashable {
    let device: UInt64
    let inode: UInt64

    init(_ status: FileStatus) { (device, inode) = (status.device, status.inode) }
  }

  /// - Parameter location: an absolute path, or nil for `files` in the spool.
  package init(_ location: String?, spool: Spool) throws(SpoolError) {
    self.location = location
    self.spool = spool
    let path = location.map { Path($0) } ?? Path(.files)
    // The root itself may be a link: it is the administrator's choice, not a job's.
    let base = location == nil ? spool.root : AT_FDCWD
    let descriptor = try spool.system.open(base, path, O_RDONLY | O_DIRECTORY)
    root = OutputDirectory(descriptor: descriptor, path: path, system: spool.system)
    fileSystem = try FileSystem(descriptor, path, spool.system, keeping: root)
  }

  /// Whether `output` leads to the directory of `place`.
  func leads(to place: OutputPlace, _ output: OutputPath) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      let found = try open(output, creating: false).parent.status()
      return try found.isSameFile(as: place.parent.status())
    } catch  where error.errno == .noSuchFileOrDirectory {
      return false
    }
  }

  /// What stands at `output`; nil when nothing does.
  package func status(_ output: OutputPath) throws(SpoolError) -> FileStatus? {
    do throws(SpoolError) {
      let place = try open(output, creating: false)
      return try spool.system.status(place.parent.descriptor, place.name)
    } catch  where error.errno == .noSuchFileOrDirectory {
      return nil
    }
  }

  /// The place of `output` with its directories made where they are missing.
  package func place(_ output: OutputPath) throws(SpoolError) -> OutputPlace {
    try open(output, creating: true)
  }

  private func open(_ output: OutputPath, creating: Bool) throws(SpoolError) -> OutputPlace {
    let system = spool.system
    func enter(_ path: Path, in parent: OutputDirectory) throws(SpoolError) -> Int32 {
      let flags = O_RDONLY | O_DIRECTORY
      do throws(SpoolError) {
        return try system.openBeneath(parent.descriptor, path, flags)
      } catch  where error.errno == .noFunction {
        // Linux before 5.6: one name with O_NOFOLLOW below an open directory cannot leave it either.
        return try system.open(parent.descriptor, path, flags | O_NOFOLLOW)
      }
    }
    var chain = [root]
    for name in output.parents {
      let parent = chain[chain.count - 1]
      let path = Path(name)
      let descriptor: Int32
      do throws(SpoolError) {
        descriptor = try enter(path, in: parent)
      } catch  where error.errno == .noSuchFileOrDirectory && creating {
        do throws(SpoolError) {
          try system.makeDirectory(parent.descriptor, path)
        } catch  where error.errno == .fileExists {
        }
        descriptor = try enter(path, in: parent)
        // One that was removed may have had this inode's number.
        durable.remove(Identity(try system.status(descriptor, path: path)))
      }
      chain.append(OutputDirectory(descriptor: descriptor, path: path, system: system))
    }
    return OutputPlace(root: self, chain: chain, name: Path(output.name), spool: spool)
  }

  /// Removes what a commit that was cut left beside `output`: a second name of the data, or its copy.
  package func removeTemporaries(beside output: OutputPath, of inodes: [UInt64]) throws(SpoolError) {
    do throws(SpoolError) {
      let place = try open(output, creating: false)
      for inode in inodes { try place.removeTemporary(of: inode) }
    } catch  where error.errno == .noSuchFileOrDirectory {
    }
  }

  /// The directories to fsync, innermost first, before `place` is a durable name: its own always, each above it once a process.
  package func unsynced(_ place: OutputPlace) throws(SpoolError) -> [Flush] {
    var flushes = [try place.parent.flush()]
    for (child, parent) in zip(place.chain.dropFirst(), place.chain).reversed() {
      let status = try child.status()
      if !durable.contains(Identity(status)) { flushes.append(try parent.flush()) }
    }
    return flushes
  }

  /// Remembers that the entries which ``unsynced(_:)`` named are durable now.
  package func noteSynced(_ place: OutputPlace) throws(SpoolError) {
    for child in place.chain.dropFirst() {
      durable.insert(Identity(try child.status()))
    }
  }
}

/// An open directory on the way to an output.
final class OutputDirectory: Sendable {
  let descriptor: Int32
  let path: Path
  private let system: System

  init(descriptor: Int32, path: Path, system: System) {
    self.descriptor = descriptor
    self.path = path
    self.system = system
  }

  deinit { _ = Glibc.close(descriptor) }

  func status() throws(SpoolError) -> FileStatus { try system.status(descriptor, path: path) }

  func flush() throws(SpoolError) -> Flush { Flush(descriptor, path, try status(), system) }
}

/// Where one payload goes: its open directory and its name there.
package final class OutputPlace {
  package let root: OutputRoot
  let chain: [OutputDirectory]
  let name: Path
  private let spool: Spool

  init(root: OutputRoot, chain: [OutputDirectory], name: Path, spool: Spool) {
    self.root = root
    self.chain = chain
    self.name = name
    self.spool = spool
  }

  var parent: OutputDirectory { chain[chain.count - 1] }

  package enum Publication: Sendable {
    case published
    /// Another file bears the name, and the job does not say `overwrite: yes`.
    case exists
    /// The output root is on another file system: the data has to be copied there.
    case otherFileSystem
  }

  package func status() throws(SpoolError) -> FileStatus? {
    do throws(SpoolError) {
      return try spool.system.status(parent.descriptor, name)
    } catch  where error.errno == .noSuchFileOrDirectory {
      return nil
    }
  }

  /// Whether the file that stands here is the data itself. On another file system its number alone proves nothing.
  package func holds(_ part: PartFile) throws(SpoolError) -> Bool {
    let data = try spool.system.status(part.descriptor, path: part.path)
    return try status()?.isSameFile(as: data) ?? false
  }

  /// Gives the verified inode its final name, by its descriptor: what stands under `partial/NAME.part` by now may be a successor's.
  package func publish(_ part: PartFile, overwrite: Bool) throws(SpoolError) -> Publication {
    if overwrite {
      let temporary = try temporaryName(part.inode)
      try removeIfPresent(temporary)
      guard try link(part, to: temporary) else { return .otherFileSystem }
      do throws(SpoolError) {
        try spool.system.rename(parent.descriptor, temporary, name)
      } catch {
        // A second name would make the data somebody else's for the next attempt, which may have another output.
        try? removeIfPresent(temporary)
        throw error
      }
      return .published
    }
    do throws(SpoolError) {
      return try link(part, to: name) ? .published : .otherFileSystem
    } catch  where error.errno == .fileExists {
      return .exists
    }
  }

  private func link(_ part: PartFile, to name: Path) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      do throws(SpoolError) {
        // linkat(2): the documented way to name an open file without CAP_DAC_READ_SEARCH.
        try spool.system.link(AT_FDCWD, Path("/proc/self/fd/\(part.descriptor)"), parent.descriptor, name, follow: true)
      } catch  where error.errno == .noSuchFileOrDirectory {
        // No /proc here; or the file lost its last name, and what bears it now is a successor's.
        guard try part.isInPlace() else { throw error }
        try spool.system.link(spool.root, part.path, parent.descriptor, name)
      }
      return true
    } catch  where error.errno == .improperLink {
      return false
    } catch {
      // A descriptor's number tells nobody anything.
      throw SpoolError(call: error.call, path: "\(part.path.display) \(name.display)", errno: error.errno)
    }
  }

  /// A name in the output directory that the job's next run finds again and no reader takes for a payload. Whoever holds the lock of the data may
  /// use it; the spool's inode keeps two spools with one output root apart.
  private func temporaryName(_ data: UInt64) throws(SpoolError) -> Path {
    let root = try spool.system.status(spool.root, path: Path(spool.location))
    return Path(".spoolrun-\(String(root.inode, radix: 16))-\(String(data, radix: 16))")
  }

  private func removeIfPresent(_ path: Path) throws(SpoolError) {
    do throws(SpoolError) {
      try spool.system.unlink(parent.descriptor, path)
    } catch  where error.errno == .noSuchFileOrDirectory {
    }
  }

  /// Removes the temporary name that a commit of the data with this inode left if it was cut.
  func removeTemporary(of data: UInt64) throws(SpoolError) { try removeIfPresent(temporaryName(data)) }

  /// Takes back the name of what was published here, if it still is the file with this inode: nobody looks for it here any more.
  package func withdraw(_ inode: UInt64) throws(SpoolError) {
    if let status = try status(), status.inode == inode { try removeIfPresent(name) }
  }

  /// Begins the copy for an output root on another file system, under a temporary name there.
  package func beginCopy(of part: PartFile) throws(SpoolError) -> OutputCopy {
    let temporary = try temporaryName(part.inode)
    try removeIfPresent(temporary)
    let descriptor = try spool.system.create(parent.descriptor, temporary, O_RDWR | O_EXCL | O_NOFOLLOW)
    return OutputCopy(
      system: spool.system, source: part.descriptor, sourcePath: part.path, length: part.length, target: descriptor,
      targetPath: temporary)
  }

  /// Gives a finished copy its final name; on false another file bears it.
  package func publish(_ copy: OutputCopy, overwrite: Bool) throws(SpoolError) -> Bool {
    if overwrite {
      try spool.system.rename(parent.descriptor, copy.targetPath, name)
      return true
    }
    do throws(SpoolError) {
      try spool.moveNoReplace(copy.targetPath, name, in: parent.descriptor)
      return true
    } catch  where error.errno == .fileExists {
      return false
    }
  }

  package func discard(_ copy: OutputCopy) throws(SpoolError) { try removeIfPresent(copy.targetPath) }

  /// Opens the file that stands here to read its checksum; closed by the caller through ``ExistingOutput``.
  package func openExisting() throws(SpoolError) -> ExistingOutput {
    let descriptor = try spool.system.open(parent.descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    let status: FileStatus
    do throws(SpoolError) {
      status = try spool.system.status(descriptor, path: name)
    } catch {
      _ = Glibc.close(descriptor)
      throw error
    }
    return ExistingOutput(system: spool.system, descriptor: descriptor, path: name, status: status)
  }
}

/// A file that stands where an output should go.
package final class ExistingOutput {
  package let status: FileStatus
  private let system: System
  private let descriptor: Int32
  private let path: Path

  init(system: System, descriptor: Int32, path: Path, status: FileStatus) {
    self.system = system
    self.descriptor = descriptor
    self.path = path
    self.status = status
  }

  deinit { _ = Glibc.close(descriptor) }

  package var reading: ChecksumReading {
    ChecksumReading(
      system: system, descriptor: descriptor, path: path, start: Mark(offset: 0, checksum: Checksum()),
      end: UInt64(status.size))
  }

  package var flush: Flush { Flush(dataOf: descriptor, path, status, system) }
}

/// A payload on its way to another file system.
package final class OutputCopy: Sendable {
  let target: Int32
  let targetPath: Path
  private let system: System
  private let source: Int32
  private let sourcePath: Path
  private let length: UInt64

  init(system: System, source: Int32, sourcePath: Path, length: UInt64, target: Int32, targetPath: Path) {
    self.system = system
    self.source = source
    self.sourcePath = sourcePath
    self.length = length
    self.target = target
    self.targetPath = targetPath
  }

  deinit { _ = Glibc.close(target) }

  /// Copies all and makes it durable, on whichever thread; gives the checksum of what was read, which has to be the verified one.
  package func run() throws(SpoolError) -> Checksum {
    var checksum = Checksum()
    try system.readBlocks(source, sourcePath, 0..<length) { (bytes, offset) throws(SpoolError) in
      checksum.update(bytes)
      try system.write(target, targetPath, bytes, at: Int64(offset))
    }
    try system.fdatasync(target, targetPath)
    return checksum
  }

  /// The new file's inode, for the receipt's recovery.
  package func inode() throws(SpoolError) -> UInt64 { try system.status(target, path: targetPath).inode }
}
