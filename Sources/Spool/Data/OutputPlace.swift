internal import Glibc
internal import SystemPackage

/// Where one payload goes: its open directory and its name there.
package final class OutputPlace {
  /// The directories from the output root to the output's own.
  let chain: [OpenDirectory]
  let name: Path
  private let root: OutputRoot
  private var spool: Spool { root.spool }

  init(chain: [OpenDirectory], name: Path, below root: OutputRoot) {
    self.chain = chain
    self.name = name
    self.root = root
  }

  var parent: OpenDirectory { chain[chain.count - 1] }

  /// What came of the attempt to give the data its final name.
  package enum Publication: Sendable {
    case published
    /// Another file has the name, and the job does not have `overwrite: yes`.
    case exists
    /// The output root is on another file system: the data has to be copied there.
    case otherFileSystem
  }

  /// The status of the file here; nil when there is none.
  package func status() throws(SpoolError) -> FileStatus? {
    try spool.system.statusIfPresent(parent.number, name)
  }

  /// Whether the file here is the data itself. On another file system its inode number alone proves nothing.
  package func isSameFile(as part: PartFile) throws(SpoolError) -> Bool {
    let data = try part.file.status()
    return try status()?.isSameFile(as: data) ?? false
  }

  /// Gives the verified inode its final name, by its descriptor: the file at `partial/NAME.part` may be a successor's
  /// by now.
  package func publish(_ part: PartFile, overwrite: Bool) throws(SpoolError) -> Publication {
    if overwrite {
      let temporary = try temporaryName(part.inode)
      try removeIfPresent(temporary)
      guard try link(part, to: temporary) else { return .otherFileSystem }
      do throws(SpoolError) {
        try spool.system.rename(parent.number, temporary, name)
      } catch {
        // With a second name the next attempt, which may have another output, would take the data for another job's.
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
        // linkat(2): the documented call to name an open file without CAP_DAC_READ_SEARCH.
        try spool.system.link(AT_FDCWD, Path("/proc/self/fd/\(part.file.number)"), parent.number, name, follow: true)
      } catch  where error.errno == .noSuchFileOrDirectory {
        // There is no /proc; or the file has no name any more, and a successor's file has it now.
        guard try part.isInPlace() else { throw error }
        try spool.system.link(spool.root, part.path, parent.number, name)
      }
      return true
    } catch  where error.errno == .improperLink {
      return false
    } catch {
      // A descriptor's number means nothing to a person.
      throw SpoolError(call: error.call, path: "\(part.path.display) \(name.display)", errno: error.errno)
    }
  }

  /// A name in the output directory that the job's next run finds again and no reader takes for a payload. The holder
  /// of the data's lock may use it. The spool's inode keeps two spools with one output root apart.
  private func temporaryName(_ data: UInt64) throws(SpoolError) -> Path {
    let root = try spool.directory.status()
    return Path(".spoolrun-\(String(root.inode, radix: 16))-\(String(data, radix: 16))")
  }

  private func removeIfPresent(_ path: Path) throws(SpoolError) {
    try spool.system.unlinkIfPresent(parent.number, path)
  }

  /// Removes the temporary name that an interrupted commit of the data with this inode left.
  func removeTemporary(of data: UInt64) throws(SpoolError) { try removeIfPresent(temporaryName(data)) }

  /// Removes the name of a payload that was published here, if it is still the file with this inode: nobody looks for
  /// it here any more.
  package func withdraw(_ inode: UInt64) throws(SpoolError) {
    if let status = try status(), status.inode == inode { try removeIfPresent(name) }
  }

  // MARK: durable names

  /// The directories to fsync, innermost first, before the output's name is durable: its own always, each above it once
  /// in a process.
  package var unsynced: [Flush] {
    var flushes = [parent.flush]
    for (child, parent) in zip(chain.dropFirst(), chain).reversed() where !root.durable.contains(child.identity.file) {
      flushes.append(parent.flush)
    }
    return flushes
  }

  /// Remembers that the entries which ``unsynced`` named are durable now.
  package func noteSynced() {
    for child in chain.dropFirst() { root.durable.insert(child.identity.file) }
  }

  // MARK: on another file system

  /// Begins the copy for an output root on another file system, under a temporary name there.
  /// - Parameter mode: of the payload; nil if only this user may read it.
  package func beginCopy(of part: PartFile, _ mode: PayloadMode? = nil) throws(SpoolError) -> OutputCopy {
    let temporary = try temporaryName(part.inode)
    try removeIfPresent(temporary)
    let target = try spool.system.createNew(parent.number, temporary)
    if let mode { try target.setPermissions(mode.bits) }
    return OutputCopy(source: part.file, length: part.length, target: target)
  }

  /// Gives a finished copy its final name.
  /// - Returns: false where another file has that name and `overwrite` is false.
  package func publish(_ copy: OutputCopy, overwrite: Bool) throws(SpoolError) -> Bool {
    if overwrite {
      try spool.system.rename(parent.number, copy.target.path, name)
      return true
    }
    do throws(SpoolError) {
      try spool.moveNoReplace(copy.target.path, name, in: parent.number)
      return true
    } catch  where error.errno == .fileExists {
      return false
    }
  }

  package func discard(_ copy: OutputCopy) throws(SpoolError) { try removeIfPresent(copy.target.path) }

  /// Opens the file that is at the output, to read its checksum.
  package func openExisting() throws(SpoolError) -> ExistingOutput {
    let file = try spool.system.open(parent.number, name, O_RDONLY | Spool.jobFlags)
    let status = try file.status()
    return ExistingOutput(file: file.shared(), status: status)
  }
}

/// A payload that is being copied to another file system.
package final class OutputCopy: Sendable {
  let target: OwnedFile
  private let source: SharedFile
  private let length: UInt64

  init(source: SharedFile, length: UInt64, target: consuming OwnedFile) {
    self.source = source
    self.length = length
    self.target = target
  }

  /// Copies all and makes it durable; on any thread.
  /// - Parameter algorithms: the digests to compute beside CRC-32.
  /// - Returns: the end of what was read, whose digests have to be the verified ones.
  package func run(_ algorithms: Set<DigestAlgorithm>) throws(SpoolError) -> Mark {
    var states = DigestStates(algorithms)
    try source.readBlocks(0..<length) { (bytes, offset) throws(SpoolError) in
      states.update(bytes)
      try target.write(bytes, at: Int64(offset))
    }
    try target.fdatasync()
    return Mark(offset: length, states: states)
  }

  /// The new file's inode, by which a later run knows the copy.
  package func inode() throws(SpoolError) -> UInt64 { try target.status().inode }
}

/// A file that has the name of an output already.
package final class ExistingOutput {
  /// The file's status when it was opened.
  package let status: FileStatus
  private let file: SharedFile

  init(file: SharedFile, status: FileStatus) {
    self.file = file
    self.status = status
  }

  /// Reads all of it.
  /// - Parameter algorithms: the digests to compute beside CRC-32.
  package func reading(_ algorithms: Set<DigestAlgorithm>) -> ChecksumReading {
    ChecksumReading(file: file, start: .zero(algorithms), end: UInt64(status.size))
  }

  package var flush: Flush { Flush(dataOf: file, status) }
}

/// A directory that is open, below an output root or the root itself.
struct OpenDirectory: Sendable {
  let file: SharedFile
  /// Its status when it was opened. As long as it is open, no other directory has its inode's number.
  let identity: FileStatus

  init(_ file: SharedFile) throws(SpoolError) {
    self.file = file
    identity = try file.status()
  }

  var number: Int32 { file.number }
  var path: Path { file.path }
  /// Makes the names in it durable.
  var flush: Flush { Flush(file, identity) }

  func isSame(as other: OpenDirectory) -> Bool { identity.isSameFile(as: other.identity) }
}
