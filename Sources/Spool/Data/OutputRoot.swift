internal import CLinux
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
  /// Its path, also if that is a link.
  private let entry: Path
  /// The directory that ``root``'s path is relative to.
  var base: Int32 { location == nil ? spool.root : AT_FDCWD }
  /// The directories below it whose own entry is durable: this process has flushed it.
  var durable: Set<[UInt64]> = []

  /// - Parameter location: an absolute path, or nil for `files` in the spool.
  /// - Throws: ``SpoolError``, ENOENT where there is no such directory.
  package init(_ location: String?, spool: Spool) throws(SpoolError) {
    (self.location, self.spool) = (location, spool)
    let path = location.map { Path($0) } ?? Path(.files)
    // The root itself may be a link: it is the administrator's choice, not a job's.
    let base = location == nil ? spool.root : AT_FDCWD
    let reached = try spool.system.reach(path, from: base)
    root = try OpenDirectory(reached.file.shared())
    entry = Path(root.path.bytes + Array("/.".utf8))
    fileSystem = FileSystem(root.file, root.identity, FileSystemKind(type: try root.file.fileSystemType()))
  }

  func leads(to place: OutputPlace, _ output: OutputPath) throws(SpoolError) -> Bool {
    try orNil(open(output, creating: false).parent.isSame(as: place.parent), where: \.isOfNoDirectory) ?? false
  }

  /// - Throws: ``SpoolError``, ELOOP where a directory of the path is a symbolic link.
  package func status(_ output: OutputPath) throws(SpoolError) -> FileStatus? {
    try orNil(open(output, creating: false).status(), on: .noSuchFileOrDirectory)
  }

  /// Whether a job with `overwrite: yes` may take the place of what is there: no device, pipe or socket, nor a link to
  /// one, such as /dev/stdout.
  package func isReplaceable(_ output: OutputPath, _ status: FileStatus) throws(SpoolError) -> Bool {
    if !status.isLink { return status.isRegular }
    let place = try open(output, creating: false)
    // A link that leads nowhere, or not for this user, can be replaced.
    let target = try? spool.system.open(place.parent.number, place.name, spoolrun_path_only).status()
    return target.map { $0.isRegular || $0.isDirectory } ?? true
  }

  /// Bytes that this user can still write there; nil if the file system does not tell, which stops no job.
  package func freeSpace() -> UInt64? {
    do throws(SpoolError) { return try root.file.freeSpace() } catch { return nil }
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

  private func open(_ output: OutputPath, creating: Bool, _ mode: PayloadMode? = nil) throws(SpoolError) -> OutputPlace
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
    return OutputPlace(chain: chain, name: Path(output.name), below: self)
  }

  private func enter(_ output: OutputPath, _ depth: Int, in parent: OpenDirectory) throws(SpoolError) -> OpenDirectory {
    do throws(SpoolError) { return try enter(Path(output.parents[depth]), in: parent) } catch {
      // A person looks for it below the output root.
      let place = output.parents[...depth].joined(separator: "/")
      throw SpoolError(call: error.call, path: escaped(place), errno: error.errno)
    }
  }

  private func enter(_ path: Path, in parent: OpenDirectory) throws(SpoolError) -> OpenDirectory {
    try OpenDirectory(spool.system.openBeneath(parent.number, path, O_RDONLY | O_DIRECTORY).shared())
  }

  private func make(_ path: Path, in parent: OpenDirectory, _ mode: PayloadMode?) throws(SpoolError) -> OpenDirectory {
    let isMade = try spool.system.makeDirectoryIfMissing(parent.number, path, mode: mode?.ofDirectories ?? 0o700)
    let made = try enter(path, in: parent)
    // A default ACL of the directory above it takes permissions away (acl(5)).
    if isMade, let mode, made.identity.permissions & 0o777 != mode.ofDirectories {
      try made.file.setPermissions(mode.ofDirectories | made.identity.permissions & 0o2000)
    }
    // A directory that was removed may have had this inode's number.
    durable.remove(made.identity.file)
    return made
  }

  /// Removes the file at `output`, durably, if it is still the one that was seen.
  func remove(_ output: OutputPath, seen: FileStatus) throws(SpoolError) -> Bool {
    let place = try open(output, creating: false)
    guard let now = try place.status(), now.isSameFile(as: seen), now.stamp == seen.stamp else { return false }
    try place.removeTemporary(of: seen.inode)
    try spool.system.unlink(place.parent.number, place.name)
    try place.parent.flush.run()
    return true
  }

  /// Gives the file at `output`, which has this status, a second name in its directory, in place of what has that name,
  /// in one step and durably.
  func name(_ output: OutputPath, as other: OutputPath, _ status: FileStatus) throws(SpoolError) {
    let place = try open(output, creating: false)
    let temporary = try place.temporaryName(status.inode)
    try place.removeTemporary(of: status.inode)
    try spool.system.link(place.parent.number, place.name, place.parent.number, temporary)
    try spool.system.rename(place.parent.number, temporary, Path(other.name))
    // Between two names of one file, rename(2) does nothing: another worker was faster.
    try place.removeTemporary(of: status.inode)
    try place.parent.flush.run()
  }

  /// Sets the time of the file at `output`, in seconds since the epoch, if there is one.
  package func setModified(_ output: OutputPath, to seconds: Int64) throws(SpoolError) {
    try orNil(open(output, creating: false).openExisting().setModified(seconds), where: \.isOfNoDirectory)
  }

  /// Removes what interrupted commits of the data with these inodes left beside `output`: a second name of the data, or
  /// a copy of it.
  package func removeTemporaries(beside output: OutputPath, of inodes: [UInt64]) throws(SpoolError) {
    let place = try orNil(open(output, creating: false), where: \.isOfNoDirectory)
    for inode in inodes { try place?.removeTemporary(of: inode) }
  }
}

extension SpoolError {
  /// Whether the path of an output leads to no directory: there is none, or it is a file or a link by now.
  fileprivate var isOfNoDirectory: Bool {
    [.noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels].contains(errno)
  }
}

/// Where the payloads of an output root may be.
package enum OutputReach: Sendable {
  /// In the root and in all directories below it. Such a root must not contain the spool.
  case below
  /// In the root itself only, so none can get into the spool, even if the root contains the spool. Of the spool of a
  /// `get`, which its root always contains, below it as well: ``CurrentOutputRoot/place(_:_:)`` enters no spool.
  case directly
}

extension OutputRoot {
  /// Whether the path still leads to the directory that is open.
  /// - Throws: ``SpoolError``, ENOENT if the path does not exist.
  func isInPlace() throws(SpoolError) -> Bool { try spool.system.status(base, entry).isSameFile(as: root.identity) }

  /// Why this root must not be published to; nil where it is outside the spool, or in its `files`.
  func misplacement(_ reach: OutputReach = .below) throws(SpoolError) -> String? {
    let name = location.map { escaped($0) } ?? "files"
    let chain = try ancestors(of: root.number)
    // By open directories, so that links and bind mounts do not matter.
    let own = try NamedRoots(spool).ownDirectories()
    let isOfSpool = own.contains { $0.isSameFile(as: chain[0]) }
    if reach == .below || isOfSpool, try ancestors(of: spool.root).contains(where: { $0.isSameFile(as: chain[0]) }) {
      return
        "the output directory \(name) contains the spool: a job's output could become a job, or the spool's defaults"
    }
    if isOfSpool { return "the output directory \(name) is a directory of the spool that is not for downloaded files" }
    guard let index = chain.firstIndex(where: { $0.isSameFile(as: own[0]) }) else { return nil }
    let files = try spool.system.status(spool.root, Path("\(Directory.files.rawValue)/."))
    if files.isSameFile(as: chain[index - 1]) { return nil }
    return "the output directory \(name) is inside the spool, where downloaded files are allowed only in files"
  }

  /// The directory and all above it, from inside to outside.
  private func ancestors(of descriptor: Int32) throws(SpoolError) -> [FileStatus] {
    var path = "."
    var found = [try spool.system.status(descriptor, Path(path))]
    while true {
      path += "/.."
      do throws(SpoolError) {
        let status = try spool.system.status(descriptor, Path(path))
        // The root is its own parent (path_resolution(7)).
        if found[found.count - 1].isSameFile(as: status) { return found }
        found.append(status)
      } catch  where error.errno == .permissionDenied {
        // No output leads through what this user may not search.
        return found
      }
    }
  }
}

/// The output roots that jobs may name: links in `roots/`, each to an absolute path. The directory is optional. Only
/// the spool's owner can write to it; whoever may drop jobs can choose among its links, and name no other directory.
package struct NamedRoots {
  let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  static let directory = OtherDirectory.roots.rawValue

  /// The spool and its directories that contain no payloads.
  func ownDirectories() throws(SpoolError) -> [FileStatus] {
    var found = [try spool.directory.status()]
    for name in Directory.allCases.filter({ $0 != .files }).map({ Path($0) }) + OtherDirectory.allCases.map(\.path) {
      if let status = try spool.system.statusIfPresent(spool.root, name) { found.append(status) }
    }
    return found
  }

  /// The directory that the link `roots/NAME` leads to; the link itself where the directory's path is not UTF-8.
  /// - Throws: ``SpoolError``: ENOENT where there is no such link, EINVAL where it is no link to an absolute path.
  package func target(of name: String) throws(SpoolError) -> String {
    let path = Path("\(Self.directory)/\(name)")
    let target = try spool.system.readLink(spool.root, path)
    guard target.first == UInt8(ascii: "/") else {
      throw SpoolError(
        call: .open, path: path.display, errno: .invalidArgument, reason: "the link must be to an absolute path")
    }
    if let text = String(validating: target, as: UTF8.self) { return text }
    do throws(Errno) { return "\(try realPath(spool.location))/\(Self.directory)/\(name)" } catch {
      throw SpoolError(call: .open, path: path.display, errno: error)
    }
  }

  /// The name in `roots` that `spoolrun get` gives to a directory.
  package static func name(for directory: String) -> String {
    String(PayloadName.fingerprint(of: [directory]).prefix(16))
  }

  /// Lets jobs name `directory` as their output root.
  /// - Parameter directory: an absolute path.
  /// - Parameter name: the link's name in `roots`, without a slash.
  /// - Throws: ``SpoolError``, EEXIST where the name leads elsewhere; EPERM or EINVAL where the link cannot be read, as
  ///   sshfs(1) may refuse with absolute ones: the job would wait for it for ever.
  package func offer(_ directory: String, as name: String) throws(SpoolError) {
    try spool.provide(Path(Self.directory))
    let path = Path("\(Self.directory)/\(name)")
    let isNew = try orNil(spool.system.symbolicLink(Path(directory), spool.root, path), on: .fileExists) != nil
    guard try target(of: name).exact == directory.exact else {
      throw SpoolError(call: .link, path: path.display, errno: .fileExists)
    }
    // The job that names it lasts, too.
    if isNew { try spool.system.open(spool.root, Path(Self.directory), O_RDONLY | O_DIRECTORY).fsync() }
  }
}

package enum PayloadCheck: Sendable {
  /// No regular file has the name.
  case missing
  /// A regular file has the name; nothing more was asked.
  case present
  /// Its size or digest differs from the receipt.
  case changed(Mismatch)
  /// Its disk cannot read it (EIO).
  case unreadable(SpoolError)
  /// Size and digests are the receipt's.
  case sound
}

extension OutputRoot {
  /// Compares a payload below this root with its receipt.
  /// - Parameter verified: what was verified; the payload is read for it. nil: only look whether the payload exists.
  /// - Parameter note: called with each block that was read.
  /// - Throws: ``SpoolError``, ELOOP where a directory of the path is a symbolic link.
  package func check(
    _ receipt: Journal.Receipt, _ verified: Journal.Verified?, note: (UnsafeRawBufferPointer) -> Void = { _ in }
  ) throws(SpoolError) -> PayloadCheck {
    guard let output = OutputPath(receipt.output), let status = try status(output), status.isRegular else {
      return .missing
    }
    guard let verified else { return .present }
    return try place(output).openExisting().check(verified, note)
  }
}

extension ExistingOutput {
  func check(_ verified: Journal.Verified, _ note: (UnsafeRawBufferPointer) -> Void) throws(SpoolError) -> PayloadCheck
  {
    let expected = verified.expectation
    // A file of another size need not be read.
    if let mismatch = expected.mismatch(size: UInt64(status.size)) { return .changed(mismatch) }
    do throws(SpoolError) {
      let mismatch = expected.mismatch(try reading(expected.digests.algorithms).run(note))
      return mismatch.map { .changed($0) } ?? .sound
    } catch  where error.errno == .ioError {
      // A file that got shorter while it was read gives the same error.
      return expected.mismatch(size: UInt64(try file.status().size)).map { .changed($0) } ?? .unreadable(error)
    }
  }
}

/// Where one payload goes: its open directory and its name there.
package final class OutputPlace {
  /// The directories from the output root to the output's own.
  let chain: [OpenDirectory]
  let name: Path
  private let root: OutputRoot
  private var spool: Spool { root.spool }

  init(chain: [OpenDirectory], name: Path, below root: OutputRoot) {
    (self.chain, self.name, self.root) = (chain, name, root)
  }

  var parent: OpenDirectory { chain[chain.count - 1] }

  package enum Publication: Sendable {
    case published
    /// Another file has the name, and the job does not have `overwrite: yes`.
    case exists
    /// The output root is on another file system: the data has to be copied there.
    case otherFileSystem
  }

  package func status() throws(SpoolError) -> FileStatus? { try spool.system.statusIfPresent(parent.number, name) }

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
    guard let isLinked = try orNil(link(part, to: name), on: .fileExists) else { return .exists }
    return isLinked ? .published : .otherFileSystem
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
  func temporaryName(_ data: UInt64) throws(SpoolError) -> Path {
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
  package func noteSynced() { for child in chain.dropFirst() { root.durable.insert(child.identity.file) } }

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
    guard try hasName(copy) else {
      throw SpoolError(
        call: .rename, path: copy.target.path.display, errno: .staleNFSFileHandle,
        reason: "another process has replaced the copy")
    }
    if overwrite {
      try spool.system.rename(parent.number, copy.target.path, name)
      return true
    }
    return try orNil(spool.moveNoReplace(copy.target.path, name, in: parent.number), on: .fileExists) != nil
  }

  package func discard(_ copy: OutputCopy) throws(SpoolError) {
    if try hasName(copy) { try removeIfPresent(copy.target.path) }
  }

  /// On another file system, another spool may have the same inode's number, and so the copy's name.
  private func hasName(_ copy: OutputCopy) throws(SpoolError) -> Bool {
    try spool.system.statusIfPresent(parent.number, copy.target.path)?.isSameFile(as: copy.target.status()) == true
  }

  /// - Parameter fromDisk: whether to read what the disk has, because a write of the file may have failed: the page
  ///   cache keeps the bytes all the same.
  package func openExisting(fromDisk: Bool = false) throws(SpoolError) -> ExistingOutput {
    let file = try spool.system.open(parent.number, name, O_RDONLY | Spool.jobFlags)
    let status = try file.status()
    // 0 stands for all of it.
    if fromDisk { try file.forgetCache(first: 0) }
    return ExistingOutput(file: file.shared(), status: status)
  }
}

/// A payload that is being copied to another file system.
package final class OutputCopy: Sendable {
  let target: OwnedFile
  private let source: SharedFile
  private let length: UInt64

  init(source: SharedFile, length: UInt64, target: consuming OwnedFile) {
    (self.source, self.length) = (source, length)
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

package final class ExistingOutput {
  package let status: FileStatus
  private let file: SharedFile

  init(file: SharedFile, status: FileStatus) { (self.file, self.status) = (file, status) }

  /// Reads all of it.
  /// - Parameter algorithms: the digests to compute beside CRC-32.
  /// - Parameter pieces: by which its pieces are checked.
  package func reading(_ algorithms: Set<DigestAlgorithm>, pieces: PieceList? = nil) -> ChecksumReading {
    ChecksumReading(file: file, start: .zero(algorithms, pieces: pieces), end: UInt64(status.size))
  }

  package var flush: Flush { Flush(dataOf: file, status) }

  func setModified(_ seconds: Int64) throws(SpoolError) { if status.isRegular { try file.setTimes(to: seconds) } }
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
  var flush: Flush { Flush(file, identity) }

  func isSame(as other: OpenDirectory) -> Bool { identity.isSameFile(as: other.identity) }
}
